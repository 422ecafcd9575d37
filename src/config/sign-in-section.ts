/** Reads `console:` and `sms:` of a configuration: who may sign in, and what sends the codes. */
import { getCountries } from "libphonenumber-js/max";
import type {
  AliyunSmsConfig,
  ConsoleConfig,
  HttpSmsConfig,
  SmsConfig,
  SmsRules,
  TwilioSmsConfig,
} from "./config.ts";
import { codesDailyDefault } from "./sign-in-limits.ts";
import { type Entry, type Fields, type Reader, fields, items, report, required } from "./reader.ts";
import { baseUrl, flag, positive, secret, shown, text, word } from "./values.ts";

/** Reads `console:`; without it everything is allowed. */
export function readConsole(reader: Reader, entry: Entry | undefined): ConsoleConfig {
  const given = entry ? fields(reader, entry, ["sign_up", "copy_again"]) : {};
  return {
    signUp: (given.sign_up && flag(reader, given.sign_up)) ?? true,
    copyAgain: (given.copy_again && flag(reader, given.copy_again)) ?? true,
  };
}

const common = ["provider", "countries", "daily_max"] as const;

/** The keys of each provider, beside the common ones. */
const own = {
  console: [],
  http: ["url", "token"],
  twilio: ["base_url", "account_sid", "auth_token", "service_sid"],
  aliyun: ["base_url", "access_key_id", "access_key_secret", "sign_name", "template_code"],
} as const;

type Provider = keyof typeof own;
type Key = (typeof common)[number] | (typeof own)[Provider][number];

const providers = Object.keys(own) as Provider[];
const keys: readonly Key[] = [...new Set([...common, ...providers.flatMap((name) => own[name])])];

/** Reads `sms:`. */
export function readSms(reader: Reader, entry: Entry): SmsConfig | undefined {
  const given: Fields<Key> = fields(reader, entry, keys);
  const fix = `name one of ${providers.join(", ")}`;
  const named = required(reader, entry, { from: given, name: "provider", fix });
  const provider = named && (word(reader, named, providers) as Provider | undefined);
  if (provider === undefined) return undefined;
  const allowed: readonly string[] = [...common, ...own[provider]];
  for (const key of keys) {
    const extra = given[key];
    if (extra === undefined || allowed.includes(key)) continue;
    report(reader, extra, `provider ${provider} has no such key; remove it`);
  }
  return { ...readRules(reader, given), ...readProvider(reader, { entry, given, provider }) };
}

function readRules(reader: Reader, given: Fields<Key>): SmsRules {
  const listed = given.countries ? items(reader, given.countries, "countries such as DE") : [];
  return {
    countries: listed.flatMap((country) => readCountry(reader, country) ?? []),
    dailyMax: (given.daily_max && positive(reader, given.daily_max)) ?? codesDailyDefault,
  };
}

const known: ReadonlySet<string> = new Set(getCountries());

function readCountry(reader: Reader, entry: Entry): string | undefined {
  const country = text(reader, entry, 10)?.toUpperCase();
  if (country === undefined || known.has(country)) return country;
  report(reader, entry, `${shown(country)} is no country: write two letters, such as CN or DE`);
  return undefined;
}

interface Section {
  readonly entry: Entry;
  readonly given: Fields<Key>;
  readonly provider: Provider;
}

type OwnConfig =
  | { readonly provider: "console" }
  | HttpSmsConfig
  | TwilioSmsConfig
  | AliyunSmsConfig;

function readProvider(reader: Reader, section: Section): OwnConfig {
  const { entry, given, provider } = section;
  const need = (name: Key, fix: string): Entry | undefined =>
    required(reader, entry, { from: given, name, fix });
  const plain = (name: Key, fix: string): string => {
    const found = need(name, fix);
    return (found && text(reader, found, 200)) ?? "";
  };
  const hidden = (name: Key): string => {
    const fix = `add ${name}: "\${env:NAME}" and set that environment variable`;
    const found = need(name, fix);
    return (found && secret(reader, found)) ?? "";
  };
  const address = (standard: string): string =>
    (given.base_url && baseUrl(reader, given.base_url)) ?? standard;
  const readers: { readonly [Name in Provider]: () => OwnConfig } = {
    console: () => ({ provider: "console" }),
    http() {
      const url = need("url", "add the address that takes messages");
      const token = given.token && secret(reader, given.token);
      return { provider: "http", url: (url && baseUrl(reader, url)) ?? "", token };
    },
    twilio: () => ({
      provider: "twilio",
      baseUrl: address("https://verify.twilio.com"),
      accountSid: plain("account_sid", "add the account's SID, which begins with AC"),
      authToken: hidden("auth_token"),
      serviceSid: plain("service_sid", "add the SID of the Verify service, which begins with VA"),
    }),
    aliyun: () => ({
      provider: "aliyun",
      baseUrl: address("https://dysmsapi.aliyuncs.com"),
      accessKeyId: hidden("access_key_id"),
      accessKeySecret: hidden("access_key_secret"),
      signName: plain("sign_name", "add the approved signature of messages"),
      templateCode: plain("template_code", "add the approved template, such as SMS_123456"),
    }),
  };
  return readers[provider]();
}
