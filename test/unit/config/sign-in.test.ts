/** `console:` and `sms:` of a configuration. */
import { expect, it } from "vitest";
import { loadText, problemsOf } from "./support.ts";

const env = { ID: "id-1", SECRET: "secret-1" };

/** A file with these sections at its end. */
function file(sections: string): string {
  return `version: 1\nvendors: { demo: { kind: demo } }\nmodels: {}\n${sections}`;
}

function signInOf(sections: string) {
  const { console, sms } = loadText(file(sections), { env });
  return { console, sms };
}

const everything = { signUp: true, copyAgain: true };

it("a file without console: and sms: allows everything and sends nothing", () => {
  expect(signInOf("")).toEqual({ console: everything, sms: undefined });
  expect(signInOf("console: { sign_up: false, copy_again: false }").console).toEqual({
    signUp: false,
    copyAgain: false,
  });
});

it("each SMS provider is configured by its own keys", () => {
  const rules = { countries: [], dailyMax: 1_000 };
  const sms = (section: string) => signInOf(`sms: ${section}`).sms;
  expect(sms("{ provider: console }")).toEqual({ ...rules, provider: "console" });
  expect(sms('{ provider: http, url: "http://sms.local/x", token: "${env:SECRET}" }')).toEqual({
    ...rules,
    provider: "http",
    url: "http://sms.local/x",
    token: env.SECRET,
  });
  const twilio =
    '{ provider: twilio, account_sid: AC1, service_sid: VA1, auth_token: "${env:SECRET}" }';
  expect(sms(twilio)).toEqual({
    ...rules,
    provider: "twilio",
    baseUrl: "https://verify.twilio.com",
    accountSid: "AC1",
    serviceSid: "VA1",
    authToken: env.SECRET,
  });
  const aliyun =
    '{ provider: aliyun, countries: [cn, SG], daily_max: 5, access_key_id: "${env:ID}", access_key_secret: "${env:SECRET}", sign_name: 极客, template_code: SMS_1 }';
  expect(sms(aliyun)).toEqual({
    countries: ["CN", "SG"],
    dailyMax: 5,
    provider: "aliyun",
    baseUrl: "https://dysmsapi.aliyuncs.com",
    accessKeyId: env.ID,
    accessKeySecret: env.SECRET,
    signName: "极客",
    templateCode: "SMS_1",
  });
});

it.each([
  ["sms: {}", "provider is missing: name one of console, http, twilio, aliyun"],
  ["sms: { provider: twillio }", 'did you mean "twilio"?'],
  ["sms: { provider: console, url: http://a.test }", "provider console has no such key; remove it"],
  ["sms: { provider: http }", "url is missing"],
  ["sms: { provider: http, url: x }", "must be an address"],
  ["sms: { provider: http, url: http://a.test, token: plain }", "sms.token"],
  ["sms: { provider: twilio, account_sid: AC1 }", "auth_token is missing"],
  ["sms: { provider: console, countries: [XX] }", '"XX" is not a country'],
  ["sms: { provider: console, countries: CN }", "must be a list of countries"],
  ["sms: { provider: console, daily_max: 0 }", "sms.daily_max: must be"],
  ["console: { signup: false }", 'did you mean "sign_up"?'],
  ["console: { sign_up: maybe }", "console.sign_up"],
])("sign-in with %s is refused", (sections, told) => {
  expect(problemsOf(file(sections), { env }).join("\n")).toContain(told);
});
