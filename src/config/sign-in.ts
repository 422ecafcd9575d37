/**
 * `console:` and `sms:` of a configuration: who may sign in, and the provider that sends one-time
 * codes.
 */
import { getCountries } from "libphonenumber-js/max";
import type { z } from "zod";
import type { Parsed } from "./address.ts";
import type { ReferenceSource } from "./references.ts";
import { address, flag, positive, quote, secret, secretFix, text, word } from "./scalars.ts";
import { allAbsent, chooseBy, list, section } from "./schema.ts";
import { codesDailyDefault } from "../core/limits.ts";

/** The users of the console and their roles. */
export type ConsoleConfig = z.output<typeof consoleSchema>;

const consoleKeys = {
  sign_up:
    "Whether the first sign-in with a mobile number creates a user and an account with a balance of 0.",
  copy_again:
    "Whether encrypted copies of API keys are stored, so that their owners can [reveal them again](console.md#keys-that-are-shown-again).",
};

/** The schema of `console:`; without the section everything is allowed. */
export const consoleSchema = section(
  {
    /** Whether the first sign-in with a mobile number creates an account. */
    sign_up: flag().default(true),
    /** Whether keys are kept, sealed, so that their owners can reveal them again. */
    copy_again: flag().default(true),
  },
  { about: consoleKeys },
);

/** The provider that sends one-time codes by SMS, and the limits of their number and countries. */
export type SmsConfig = z.output<ReturnType<typeof smsSchema>>;

/** A server of the operator's own that takes messages as JSON. */
export type HttpSmsConfig = Extract<SmsConfig, { provider: "http" }>;

/** Twilio Verify. */
export type TwilioSmsConfig = Extract<SmsConfig, { provider: "twilio" }>;

/** The SMS service of Alibaba Cloud. */
export type AliyunSmsConfig = Extract<SmsConfig, { provider: "aliyun" }>;

/** The schema of `sms:`. */
export function smsSchema(references: ReferenceSource) {
  const providers = {
    console: () => section(common("console", references), { about: smsKeys }),
    http: () => httpSchema(references),
    twilio: () => twilioSchema(references),
    aliyun: () => aliyunSchema(references),
  };
  const fix = `name one of ${Object.keys(providers).join(", ")}`;
  return chooseBy("provider", providers, fix);
}

/** Keys that all providers share, and errors for the keys of other providers. */
function common<const Provider extends string>(provider: Provider, references: ReferenceSource) {
  return {
    ...allAbsent(ownKeys, `provider ${provider} has no such key; remove it`),
    provider: word([provider]),
    /** The countries whose numbers are served, as ISO 3166-1 alpha-2 codes; empty for all. */
    countries: list(country(references), "countries such as DE").default([]),
    /** The most codes in a day, to all numbers together. */
    daily_max: positive().default(codesDailyDefault),
  };
}

const smsKeys = {
  provider:
    "The provider. `console`, for development, sends nothing: codes appear on the page and in the log.",
  countries: "The countries whose numbers get codes, as two-letter codes. Default: all.",
  daily_max:
    "Maximum number of codes per day for all numbers. Three quarters can go to [strangers](console.md#codes). Beyond it the log has an error, and `uas_sms_sends_total` counts `capped`.",
  url: "`http`: the address that receives a `POST` of `{to, code, language, text}`; any 2xx means accepted.",
  token: "`http`: sent as `authorization: Bearer`. Default: none.",
  base_url: "`aliyun`, `twilio`: another address of the provider.",
  account_sid: "`twilio`: the account.",
  auth_token: "`twilio`: the credential.",
  service_sid: '`twilio`: the Verify service, with "custom verification code" enabled.',
  access_key_id: "`aliyun`: the credential.",
  access_key_secret: "`aliyun`: its secret.",
  sign_name: "`aliyun`: the approved signature.",
  template_code: "`aliyun`: an approved template whose only variable is `code`.",
};

/** The keys that only some providers have. */
const ownKeys = [
  "url",
  "token",
  "base_url",
  "account_sid",
  "auth_token",
  "service_sid",
  "access_key_id",
  "access_key_secret",
  "sign_name",
  "template_code",
] as const;

function httpSchema(references: ReferenceSource) {
  return section(
    {
      ...common("http", references),
      url: address(references, "add the address that receives the messages"),
      /** Sent as a bearer token. Never logged. Undefined if none is sent. */
      token: secret(references).optional(),
    },
    { about: smsKeys },
  );
}

function twilioSchema(references: ReferenceSource) {
  const sidFix = "add the SID of the Verify service, which begins with VA";
  return section(
    {
      ...common("twilio", references),
      base_url: address(references).default("https://verify.twilio.com"),
      account_sid: text(references, 200, { fix: "add the account's SID, which begins with AC" }),
      /** Never logged. */
      auth_token: secret(references, secretFix("auth_token")),
      service_sid: text(references, 200, { fix: sidFix }),
    },
    { about: smsKeys },
  );
}

function aliyunSchema(references: ReferenceSource) {
  const templateFix = "add the approved template, such as SMS_123456";
  return section(
    {
      ...common("aliyun", references),
      base_url: address(references).default("https://dysmsapi.aliyuncs.com"),
      access_key_id: secret(references, secretFix("access_key_id")),
      /** Never logged. */
      access_key_secret: secret(references, secretFix("access_key_secret")),
      sign_name: text(references, 200, { fix: "add the approved signature of messages" }),
      template_code: text(references, 200, { fix: templateFix }),
    },
    { about: smsKeys },
  );
}

const knownCountries: ReadonlySet<string> = new Set(getCountries());

function country(references: ReferenceSource) {
  const parse = (written: string): Parsed<string> => {
    const value = written.toUpperCase();
    if (knownCountries.has(value)) return { value };
    return { problem: `${quote(value)} is not a country: write two letters, such as CN or DE` };
  };
  return text(references, 10, { parse });
}
