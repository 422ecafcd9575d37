/**
 * Errors of services name fields as the contract does. Their callers read the names that they sent
 * themselves.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { GatewayError } from "../../core/errors.ts";
import { isRecord } from "../../wire/json/value.ts";

/**
 * The error with the name of its field as the caller wrote it: `request_id` for a caller of
 * `requestId`.
 *
 * @param sent the members that the caller sent
 */
export function inCallersSpelling(error: GatewayError, sent: JsonObject): GatewayError {
  const { param } = error;
  if (param === undefined) return error;
  const wanted = camelPath(param);
  const found = pathsIn(sent).find((path) => camelPath(path) === wanted);
  if (found === undefined || found === param) return error;
  const { code, details, metadata, status, retryAfterSeconds } = error;
  return new GatewayError(code, error.message.replaceAll(param, found), {
    param: found,
    details,
    metadata,
    status,
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
    cause: error,
  });
}

function camelPath(path: string): string {
  return path.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}

/** The paths of members, two levels deep: no request of the contract has more. */
function pathsIn(record: JsonObject): string[] {
  return Object.entries(record).flatMap(([name, value]) =>
    isRecord(value) ? [name, ...Object.keys(value).map((inner) => `${name}.${inner}`)] : [name],
  );
}
