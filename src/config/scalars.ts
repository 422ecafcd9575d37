/**
 * Schemas of single values of `uas.yaml`: words, texts, numbers, durations, prices, addresses,
 * secrets.
 *
 * A scalar arrives as the source text of the file, so each of them parses text: prices stay exact,
 * and a message can quote what the operator wrote, except for secrets and addresses.
 */
import { z } from "zod";
import { int32Max } from "../core/int32.ts";
import { parseUsd } from "../core/money.ts";
import { parseRfc3339 } from "../core/rfc3339.ts";
import type { Parsed } from "./address.ts";
import { type ReferenceSource, resolveSecret, resolveText, secretPattern } from "./references.ts";
import { hint } from "../core/suggest.ts";

/**
 * A scalar, parsed by a function.
 *
 * @param what completes "must be …", if the value is a map, a list or an empty text
 * @param fix remedy if the value is missing; not needed for optional values
 */
export function scalar<Value>(what: string, parse: (text: string) => Parsed<Value>, fix = "") {
  const wrongForm = `must be ${what}`;
  return z
    .string({ error: ({ input }) => (input === undefined ? fix : wrongForm) })
    .min(1, { error: wrongForm, abort: true })
    .transform((written, context) => {
      const parsed = parse(written);
      if ("value" in parsed) return parsed.value;
      context.addIssue({ code: "custom", message: parsed.problem });
      return z.NEVER;
    });
}

/** One of a closed list of words. */
export function word<const Word extends string>(words: readonly Word[], fix = "") {
  return z.enum(words, {
    error: ({ input }) => {
      if (input === undefined) return fix;
      if (typeof input !== "string" || input === "") return `must be one of ${words.join(", ")}`;
      return `${quote(input)} is not known${hint(input, words)}`;
    },
  });
}

/** `true` or `false`. */
export function flag() {
  return word(["true", "false"])
    .transform((written) => written === "true")
    .meta({ type: "boolean", enum: [true, false] });
}

/** One line of 1 to `charsMax` characters; `${env:NAME}` is replaced. */
export function text(
  references: ReferenceSource,
  charsMax: number,
  { fix = "", parse = asIs }: { fix?: string; parse?: (text: string) => Parsed<string> } = {},
) {
  const parseText = (written: string): Parsed<string> =>
    readLine(written, { references, charsMax, parse });
  return scalar("a text", parseText, fix).meta(textForm);
}

/** In JSON Schema: one line, in which `${` begins a reference. YAML reads some texts as numbers. */
const textForm = {
  title: "text",
  type: ["string", "number", "boolean"],
  pattern: "^([^$\\u0000-\\u001f\\u007f]|\\$(?!\\{)|\\$\\{env:[A-Za-z_][A-Za-z0-9_]*\\})+$",
} as const;

/** A vendor's word for the size or quality of images. */
export function imageWord() {
  const parse = (written: string): Parsed<string> =>
    /^[\w.:*×-]{1,32}$/.test(written) && written !== "auto"
      ? { value: written }
      : { problem: "must be a vendor's word, such as 1024x1024, 2k or high" };
  return scalar("a word", parse).meta({
    title: "word of the vendor",
    type: ["string", "number"],
    pattern: "^(?!auto$)[A-Za-z0-9_.:*×-]{1,32}$",
  });
}

function asIs(value: string): Parsed<string> {
  return { value };
}

function readLine(
  written: string,
  rules: {
    readonly references: ReferenceSource;
    readonly charsMax: number;
    readonly parse: (text: string) => Parsed<string>;
  },
): Parsed<string> {
  const resolved = resolveText(written, rules.references);
  if ("problem" in resolved) return resolved;
  // oxlint-disable-next-line no-control-regex
  const isLine = !/[\u0000-\u001f\u007f]/.test(resolved.value);
  if (isLine && resolved.value.length <= rules.charsMax) return rules.parse(resolved.value);
  return { problem: `must be one line of at most ${rules.charsMax} characters` };
}

/**
 * A credential: `${env:NAME}` or `${file:/path}` and nothing else. Its text appears in no message.
 */
export function secret(references: ReferenceSource, fix = "") {
  const parse = (written: string): Parsed<string> => resolveSecret(written, references);
  return scalar('a reference such as "${env:NAME}"', parse, fix).meta(secretForm);
}

/** A credential, as the file refers to it. */
export interface WrittenSecret {
  readonly value: string;
  /** The name of the variable, or of the file without its folders: it may be shown. */
  readonly name: string;
}

/** Like {@link secret}, with a distinguishing name. */
export function namedSecret(references: ReferenceSource, fix = "") {
  const parse = (written: string): Parsed<WrittenSecret> => {
    const resolved = resolveSecret(written, references);
    if ("problem" in resolved) return resolved;
    const name = written.replace(/^\$\{(?:env|file|secret|credential|exec):/, "").slice(0, -1);
    return { value: { value: resolved.value, name: name.split("/").at(-1) || name } };
  };
  return scalar('a reference such as "${env:NAME}"', parse, fix).meta(secretForm);
}

const secretForm = { title: "reference", pattern: secretPattern } as const;

/** The remedy for a file that lacks a credential. */
export function secretFix(name: string): string {
  return `add ${name}: "\${env:NAME}" and set that environment variable`;
}

/** A whole number from 1 to {@link int32Max}. */
export function positive(fix = "") {
  return whole(1, int32Max, fix);
}

/** A whole number from `least` to `most`. */
export function whole(least: number, most: number, fix = "") {
  const what = `a whole number from ${least} to ${most}`;
  return scalar(
    what,
    (written): Parsed<number> => {
      const value = /^\d{1,10}$/.test(written) ? Number(written) : -1;
      if (value >= least && value <= most) return { value };
      return { problem: `must be ${what}, without quotes, sign or point` };
    },
    fix,
  ).meta({ title: "whole number", type: "integer", minimum: least, maximum: most });
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** The longest duration: a day, well below the longest timer. */
const durationMsMax = 86_400_000;

/** A duration such as `500ms`, `5s`, `2m`, in milliseconds. */
export function duration() {
  const what = "a whole number with its unit: 500ms, 5s, 2m or 1h; more than 0, at most 24h";
  return scalar(what, (written): Parsed<number> => {
    const match = /^(\d{1,8})(ms|s|m|h)$/.exec(written);
    const value = match ? Number(match[1]) * (unitMs[match[2] ?? ""] ?? 0) : 0;
    return value >= 1 && value <= durationMsMax ? { value } : { problem: `must be ${what}` };
  }).meta({ title: "duration", pattern: "^0*[1-9][0-9]{0,7}(ms|s|m|h)$" });
}

/** The longest retention: a hundred years. */
const daysMax = 36_500;

/** A number of days such as `90d`. */
export function days() {
  const what = `a whole number of days, such as 90d; from 1d to ${daysMax}d`;
  return scalar(what, (written): Parsed<number> => {
    const value = Number(/^(\d{1,5})d$/.exec(written)?.[1] ?? 0);
    return value >= 1 && value <= daysMax ? { value } : { problem: `must be ${what}` };
  }).meta({ title: "days", pattern: "^0*[1-9][0-9]{0,4}d$" });
}

/** A price in USD, quoted or not, in nano-USD: exact, as it is read from the text. */
export function usd(fix = "") {
  return scalar(
    'a price such as "0.25"',
    (written): Parsed<bigint> => {
      const value = parseUsd(written);
      if (value !== undefined) return { value };
      return {
        problem: `${quote(written)} is not a price: write US dollars as a decimal number such as "0.25", at most 9 digits after the point, without sign or exponent`,
      };
    },
    fix,
  ).meta({
    title: "price",
    type: ["string", "number"],
    pattern: "^[0-9]{1,10}(\\.[0-9]{1,9})?$",
    minimum: 0,
  });
}

/**
 * An RFC 3339 date (midnight in UTC), or date and time with an offset, in milliseconds since 1970.
 */
export function moment() {
  const what =
    'a date such as 2026-07-01 (midnight in UTC) or a time such as "2026-07-01T09:00:00Z"';
  return scalar(what, (written): Parsed<number> => {
    const value = parseRfc3339(written);
    if (value !== undefined) return { value };
    return { problem: `${quote(written)} is not a date or time: write ${what}` };
  }).meta({ title: "date or time", pattern: "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt].+)?$" });
}

/**
 * An http or https address, without its trailing slash. No message repeats it: it may hold a
 * password.
 */
export function address(references: ReferenceSource, fix = "") {
  const parse = (found: string): Parsed<string> => {
    const { placeholder } = references;
    const isUnresolved = placeholder !== undefined && found.startsWith(placeholder);
    const written = isUnresolved ? `http://${found}` : found;
    const problem = addressProblem(written);
    if (problem !== undefined) return { problem };
    return { value: new URL(written).href.replace(/\/+$/, "") };
  };
  return text(references, 2_000, { fix, parse }).meta({
    title: "address",
    type: "string",
    pattern: "^([hH][tT][tT][pP][sS]?://[^/?#@]+(/[^?#]*)?|.*\\$\\{env:.*)$",
  });
}

function addressProblem(written: string): string | undefined {
  const url = URL.parse(written);
  if (url === null || !/^https?:\/\//i.test(written)) {
    return "must be an address such as https://api.example.com/v1";
  }
  if (url.username !== "" || url.password !== "") {
    return "must not contain a user or password: put the credential into api_key";
  }
  if (/[?#]/.test(written))
    return "must not contain a query or fragment: remove what follows ? or #";
  return undefined;
}

/** Quotes a text of the file in a message, escaped and cut to 60 characters. */
export function quote(value: string): string {
  return JSON.stringify(value.length <= 60 ? value : `${value.slice(0, 60)}…`);
}
