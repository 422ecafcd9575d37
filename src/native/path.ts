/**
 * Checks paths and queries of native requests in their sent form: decoded, `%2f` and `..` would
 * make a path that was never checked. Pure.
 */
import { ErrorCode, GatewayError } from "../core/errors.ts";

/**
 * One slash, segments of plain characters, none of them empty or made of dots. `*` to `~` of RFC
 * 3986.
 */
const plainPath = /^(?:\/[\w\-.~!$&'()*+,;=:@]+)+\/?$/;
const dots = /\/\.{1,2}(?:\/|$)/;

/** The longest path, in characters. */
const pathCharsMax = 2_048;

/** 404 for an address that is not served. */
export function noSuchAddress(method: string, path: string): GatewayError {
  const shown = path.slice(0, 200).replaceAll(/[^\x20-\x7e]/g, "?");
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    `There is no ${method} ${shown} here: use one of the vendor's paths that the gateway serves`,
  );
}

/**
 * Checks a path.
 *
 * @throws GatewayError NOT_FOUND for a path that no vendor's client sends
 */
export function checkPath(method: string, path: string): void {
  if (path.length <= pathCharsMax && plainPath.test(path) && !dots.test(path)) return;
  throw noSuchAddress(method, path);
}

/** The characters of a query. */
const queryForm = /^[\x21\x23-\x7e]*$/;

/** Reads a query. @throws GatewayError INVALID_REQUEST */
export function readQuery(query: string): URLSearchParams {
  if (queryForm.test(query)) return new URLSearchParams(query);
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The query contains invalid characters: percent-encode them",
  );
}

/** Removes parameters of a query; the others keep their spelling. */
export function withoutParams(query: string, names: readonly string[]): string {
  if (query === "" || names.length === 0) return query;
  const isKept = (pair: string): boolean => {
    const params = new URLSearchParams(pair);
    return !names.some((name) => params.has(name));
  };
  return query.split("&").filter(isKept).join("&");
}
