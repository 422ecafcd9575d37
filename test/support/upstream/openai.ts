/** Common parts of OpenAI's two styles: authentication, words of refusals, headers. */
import { vendorHeaders } from "./behaviour.ts";
import type { RecordedRequest } from "./exchange.ts";
import type { Rules } from "./rules.ts";
import { schemaFault } from "./strict-schema.ts";
import { bracketPath, invalid, map, type Path, type ShapeError, text } from "./shape.ts";
import type { StyleError } from "./strict.ts";

/** Headers of the other styles. */
export const foreignPrefixes = ["anthropic-", "x-goog-"] as const;

/** Headers of every reply. */
export const headers = vendorHeaders;

/** Refuses unknown paths, methods, media types and credentials. */
export function doorRefusalAt(path: string, ...more: readonly string[]) {
  return (
    { method, url, headers: sent }: RecordedRequest,
    rules: Rules,
  ): StyleError | undefined => {
    if (sent.authorization !== `Bearer ${rules.secret}`) {
      return { status: 401, message: "Incorrect API key provided.", code: "invalid_api_key" };
    }
    const asked = url.split("?")[0];
    if (![path, ...more].includes(asked ?? ""))
      return { status: 404, message: `Invalid URL (${method} ${asked})` };
    if (method !== "POST") return { status: 405, message: `Not allowed to ${method} on ${path}` };
    if (!/^application\/json\b/.test(sent["content-type"] ?? "")) {
      return { status: 400, message: "you must set the content-type header to application/json" };
    }
    return undefined;
  };
}

/** Refuses models that the vendor does not have. */
export function modelRefusal(model: unknown): StyleError | undefined {
  if (model === "vendor-model") return undefined;
  const message = `The model \`${String(model)}\` does not exist or you do not have access to it.`;
  return { status: 404, message, code: "model_not_found" };
}

/** `Unknown parameter: 'x'.` */
export function messageOf({ kind, path, message }: ShapeError): string {
  const where = bracketPath(path);
  if (kind === "unknown") return `Unknown parameter: '${where}'.`;
  if (kind === "missing") return `Missing required parameter: '${where}'.`;
  return /^(Invalid|No |Item|The |An |Tool |Setting|Duplicate)/.test(message)
    ? message
    : `Invalid '${where}': ${message}`;
}

const types: Readonly<Record<number, string>> = {
  429: "requests",
  500: "server_error",
  503: "server_error",
  529: "server_error",
};

/** The members of an error. */
export function errorOf(error: StyleError): Record<string, unknown> {
  return {
    message: error.message,
    type: types[error.status] ?? "invalid_request_error",
    param: error.path ? bracketPath(error.path) : null,
    code: error.code ?? (error.status === 429 ? "rate_limit_exceeded" : null),
  };
}

/** Up to 16 short strings. */
export const metadata = map(text({ max: 512 }));

/** The name of a function in either style. */
export const functionName = text({ min: 1, max: 64, pattern: /^[a-zA-Z0-9_-]+$/ });

/** Refuses a schema that is to be followed strictly and cannot be. */
export function checkStrict(schema: unknown, path: Path, what: string): void {
  const fault = schemaFault(schema, { allRequired: true });
  if (fault) invalid(path, `Invalid schema for ${what}: ${fault}`, "invalid_json_schema");
}
