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

/** The schema of `console:`; without the section everything is allowed. */
export const consoleSchema = section({
  /** Whether the first sign-in with a mobile number creates an account. */
  sign_up: flag().default(true),
  /** Whether keys are kept, sealed, so that their owners can reveal them again. */
  copy_again: flag().default(true),
});

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
    console: () => section(common("console", references)),
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
  return section({
    ...common("http", references),
    url: address(references, "add the address that receives the messages"),
    /** Sent as a bearer token. Never logged. Undefined if none is sent. */
    token: secret(references).optional(),
  });
}

function twilioSchema(references: ReferenceSource) {
  const sidFix = "add the SID of the Verify service, which begins with VA";
  return section({
    ...common("twilio", references),
    base_url: address(references).default("https://verify.twilio.com"),
    account_sid: text(references, 200, { fix: "add the account's SID, which begins with AC" }),
    /** Never logged. */
    auth_token: secret(references, secretFix("auth_token")),
    service_sid: text(references, 200, { fix: sidFix }),
  });
}

function aliyunSchema(references: ReferenceSource) {
  const templateFix = "add the approved template, such as SMS_123456";
  return section({
    ...common("aliyun", references),
    base_url: address(references).default("https://dysmsapi.aliyuncs.com"),
    access_key_id: secret(references, secretFix("access_key_id")),
    /** Never logged. */
    access_key_secret: secret(references, secretFix("access_key_secret")),
    sign_name: text(references, 200, { fix: "add the approved signature of messages" }),
    template_code: text(references, 200, { fix: templateFix }),
  });
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
