/** The table of bad requests: what each must get, in the style of chat completions. */
import { bodyBytesMax, jsonNumbersMax, jsonPartsMax } from "../../../src/core/limits.ts";
import { ask } from "../harness.ts";

/** One bad request: what differs from a good one, and what must come back. */
export interface Row {
  readonly name: string;
  readonly status: number;
  /** Default: `invalid_request`. */
  readonly code?: string;
  readonly method?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: a good body. */
  readonly body?: string | Uint8Array;
  /** Required content of the message. */
  readonly says?: RegExp;
  readonly param?: string;
}

/** A body that is right. */
export const good = JSON.stringify(ask);
/** A key in the valid form that does not exist. */
export const unknownKey = "uas_00000000000000000000000000000000";
const noAuthorization = { authorization: "" };

const keys: readonly Row[] = [
  { name: "no key", status: 401, headers: noAuthorization, says: /Bearer/ },
  {
    name: "empty key in all slots",
    status: 401,
    headers: { ...noAuthorization, "x-api-key": "" },
    query: "api-key=",
    says: /Missing/,
  },
  {
    name: "Bearer without a key",
    status: 401,
    headers: { authorization: "Bearer " },
    says: /Missing/,
  },
  {
    name: "another scheme",
    status: 401,
    headers: { authorization: "Basic dXNlcjpwdw==" },
    says: /Missing/,
  },
  {
    name: "unknown key as Bearer",
    status: 401,
    headers: { authorization: `Bearer ${unknownKey}` },
    says: /Invalid API Key/,
  },
  {
    name: "unknown key in X-API-Key",
    status: 401,
    headers: { ...noAuthorization, "x-api-key": unknownKey },
    says: /Invalid API Key/,
  },
  {
    name: "unknown key in the query",
    status: 401,
    headers: noAuthorization,
    query: `api-key=${unknownKey}`,
    says: /Invalid API Key/,
  },
  {
    name: "garbage as Bearer",
    status: 401,
    headers: { authorization: "Bearer \u00ff\u00fe';--" },
    says: /Invalid API Key/,
  },
  {
    name: "garbage in X-API-Key",
    status: 401,
    headers: { ...noAuthorization, "x-api-key": "a b\tc" },
    says: /Invalid API Key/,
  },
  {
    name: "garbage in the query",
    status: 401,
    headers: noAuthorization,
    query: "api-key=%00%ff%&api-key=2",
    says: /Invalid API Key/,
  },
  {
    name: "a very long key",
    status: 401,
    headers: { authorization: `Bearer ${"k".repeat(8_000)}` },
    says: /Invalid API Key/,
  },
];

/** A body that nests so deep; the object itself is level 1. */
export function nested(levels: number): string {
  const inner = levels - 1;
  return good.replace(/\}$/, `,"x":${"[".repeat(inner)}${"]".repeat(inner)}}`);
}

/** A body with a list of so many values. */
export function dense(value: string, count: number): string {
  return good.replace(/\}$/, `,"x":[${Array(count).fill(value).join(",")}]}`);
}

const bodies: readonly Row[] = [
  { name: "empty", status: 400, body: "" },
  { name: "spaces only", status: 400, body: "  \n" },
  { name: "broken JSON", status: 400, body: `${good.slice(0, -1)},}`, says: /JSON/ },
  { name: "cut JSON", status: 400, body: good.slice(0, -1), says: /JSON/ },
  { name: "two objects", status: 400, body: `${good}${good}`, says: /JSON/ },
  { name: "an array", status: 400, body: `[${good}]`, says: /object/ },
  { name: "a string", status: 400, body: '"x"', says: /object/ },
  { name: "null", status: 400, body: "null", says: /object/ },
  { name: "a byte order mark", status: 400, body: `\ufeff${good}` },
  { name: "65 levels", status: 400, body: nested(65), says: /64/ },
  { name: "100,000 levels", status: 400, body: nested(100_000), says: /64/ },
  { name: "300,001 objects", status: 400, body: dense("{}", jsonPartsMax), says: /300000 objects/ },
  { name: "2,000,001 numbers", status: 400, body: dense("1", jsonNumbersMax + 1), says: /numbers/ },
  { name: "a NUL byte in a text", status: 400, body: good.replace("hello", "he\u0000llo") },
  { name: "a NUL byte behind the body", status: 400, body: `${good}\u0000` },
  {
    name: "bad UTF-8",
    status: 400,
    body: Buffer.concat([
      Buffer.from(good.slice(0, -4)),
      Buffer.from([0xc3, 0x28]),
      Buffer.from(good.slice(-4)),
    ]),
    says: /UTF-8/,
  },
  {
    name: "an overlong form",
    status: 400,
    body: Buffer.concat([
      Buffer.from(good.slice(0, -4)),
      Buffer.from([0xc0, 0xaf]),
      Buffer.from(good.slice(-4)),
    ]),
    says: /UTF-8/,
  },
  { name: "UTF-16", status: 400, body: Buffer.from(good, "utf16le") },
  {
    name: "20 MiB and one byte",
    status: 413,
    code: "request_too_large",
    body: Buffer.alloc(bodyBytesMax + 1, 0x20),
    says: /20971520/,
  },
];

/** The good body with other members. */
export function changed(change: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ ...ask, ...change });
}

const members: readonly Row[] = [
  {
    name: "no model",
    status: 400,
    body: changed({ model: undefined }),
    param: "model",
    says: /model/,
  },
  { name: "an empty model", status: 400, body: changed({ model: "" }), param: "model" },
  { name: "model is null", status: 400, body: changed({ model: null }), param: "model" },
  { name: "model is a number", status: 400, body: changed({ model: 5 }), param: "model" },
  { name: "model is an object", status: 400, body: changed({ model: {} }), param: "model" },
  { name: "model twice", status: 400, body: `{"model":"x",${good.slice(1)}`, param: "model" },
  {
    name: "model twice, once in escapes",
    status: 400,
    body: `{"m\\u006fdel":"x",${good.slice(1)}`,
    param: "model",
  },
  {
    name: "unknown model",
    status: 404,
    code: "model_not_found",
    body: changed({ model: "none" }),
    param: "model",
  },
  {
    name: "model with a NUL",
    status: 404,
    code: "model_not_found",
    body: changed({ model: "no\u0000ne" }),
  },
  {
    name: "model with half a surrogate",
    status: 404,
    code: "model_not_found",
    body: changed({ model: "x" }).replace('"x"', '"\\ud800"'),
  },
  {
    name: "a prototype's name as model",
    status: 404,
    code: "model_not_found",
    body: changed({ model: "__proto__" }),
  },
  {
    name: "a very long model",
    status: 404,
    code: "model_not_found",
    body: changed({ model: "m".repeat(100_000) }),
  },
  { name: "no messages", status: 400, body: changed({ messages: undefined }), param: "messages" },
  {
    name: "messages is a string",
    status: 400,
    body: changed({ messages: "hi" }),
    param: "messages",
  },
  {
    name: "negative max_tokens",
    status: 400,
    body: changed({ max_tokens: -1 }),
    param: "max_tokens",
  },
  { name: "max_tokens is 0", status: 400, body: changed({ max_tokens: 0 }), param: "max_tokens" },
  {
    name: "max_tokens is 1.5",
    status: 400,
    body: changed({ max_tokens: 1.5 }),
    param: "max_tokens",
  },
  {
    name: "max_tokens is a string",
    status: 400,
    body: changed({ max_tokens: "5" }),
    param: "max_tokens",
  },
  {
    name: "max_tokens is 1e400",
    status: 400,
    body: changed({ max_tokens: 7 }).replace("7}", "1e400}"),
    param: "max_tokens",
  },
  {
    name: "max_tokens is 2^53",
    status: 400,
    body: changed({ max_tokens: 2 ** 53 }),
    param: "max_tokens",
  },
  {
    name: "negative max_completion_tokens",
    status: 400,
    body: changed({ max_completion_tokens: -5 }),
    param: "max_completion_tokens",
  },
  { name: "n is 0", status: 400, body: changed({ n: 0 }), param: "n" },
  { name: "n is 129", status: 400, body: changed({ n: 129 }), param: "n" },
  { name: "n is negative", status: 400, body: changed({ n: -1 }), param: "n" },
  { name: "stream is a string", status: 400, body: changed({ stream: "yes" }), param: "stream" },
  {
    name: "stream_options is a list",
    status: 400,
    body: changed({ stream: true, stream_options: [] }),
    param: "stream_options",
  },
];

const others: readonly Row[] = [
  ...["GET", "PUT", "PATCH", "DELETE", "OPTIONS"].map((method) => ({
    name: `method ${method}`,
    method,
    status: 405,
    code: "method_not_allowed",
    says: /POST/,
  })),
  {
    name: "no content type",
    status: 415,
    code: "unsupported_media_type",
    headers: { "content-type": "" },
    says: /content-type: application\/json/,
  },
  {
    name: "text/plain",
    status: 415,
    code: "unsupported_media_type",
    headers: { "content-type": "text/plain" },
    says: /application\/json/,
  },
  {
    name: "a form",
    status: 415,
    code: "unsupported_media_type",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    says: /application\/json/,
  },
  {
    name: "a malformed content type",
    status: 415,
    code: "unsupported_media_type",
    headers: { "content-type": "///" },
  },
];

/** All of them. */
export const badRequests: readonly Row[] = [...keys, ...bodies, ...members, ...others];
