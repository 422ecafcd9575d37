/** HTTP errors, and how errors are sent. */
import type { IncomingMessage } from "node:http";
import { ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";
import { bodyBytesMax } from "../../core/limits.ts";
import { uploadMax } from "../../config/upload-limits.ts";
import { dialects, type DialectId } from "../../dialect/index.ts";
import {
  ErrorCode,
  fromRpcError,
  GatewayError,
  internalError,
  type SentErrorCode,
} from "../../core/errors.ts";
import { nearest } from "../../core/suggest.ts";
import { adviceFor } from "./unserved.ts";

/** Converts any failure to a GatewayError. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof ConnectError) return fromRpcError(error);
  const code = (error as { code?: unknown } | null)?.code;
  const read = typeof code === "string" ? httpFailures[code] : undefined;
  if (read !== undefined) return read();
  const status = (error as { statusCode?: unknown } | null)?.statusCode;
  if (typeof status === "number" && status >= 400 && status < 500) {
    return new GatewayError(ErrorCode.INVALID_REQUEST, "The HTTP request is malformed", {
      cause: error,
    });
  }
  return internalError(error);
}

const httpFailures: Readonly<Record<string, () => GatewayError>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => unsupportedMediaType(),
};

/** The error for a body with another content type than JSON. */
export function unsupportedMediaType(): GatewayError {
  return new GatewayError(
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
    "The body must be JSON: send the header `content-type: application/json`",
  );
}

/** The error for a body that is not a form although the route requires one. */
export function noForm(): GatewayError {
  return new GatewayError(
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
    "The body must be a form with a file: send it as `content-type: multipart/form-data` with a boundary, as SDKs do",
  );
}

/** The error for a form that is too long. */
export function formTooLarge(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `The request is longer than ${uploadMax.bytes} bytes; send less`,
  );
}

/** The error for a body that is too long. */
export function bodyTooLarge(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `The body is longer than ${bodyBytesMax} bytes; send less, or refer to large files by URL`,
  );
}

/** The error for a body whose length differs from its `content-length`. */
export function wrongLength(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The body's length differs from content-length: send the right length",
  );
}

/**
 * The error for an unknown path. The path is repeated without its query, which may contain a key.
 *
 * @param paths those that it may be a misspelling of
 */
export function noSuchPath(
  method: string,
  url: string,
  paths: readonly string[] = [],
): GatewayError {
  const path = (url.split("?")[0] ?? "").slice(0, 200);
  const advice = adviceFor(path) ?? meantPath(path, paths);
  return new GatewayError(ErrorCode.NOT_FOUND, `There is no ${method} ${path} here; ${advice}`);
}

/** Whether the path of a request lacks an id or name of its route, as `/v1/responses/` does. */
export function lacksName(params: object): boolean {
  return Object.values(params).includes("");
}

/**
 * The error for a path that lacks an id or name of its route.
 *
 * @param route the path in the router's syntax
 */
export function nameMissing(method: string, url: string, route: string): GatewayError {
  const [list = ""] = route.split(/\/[:*]/, 1);
  return noSuchPath(method, url, [list]);
}

function meantPath(sent: string, paths: readonly string[]): string {
  // Some clients join a base URL that ends in a slash, which doubles it, and some add a slash to
  // the end.
  const path = sent.replace(/\/{2,}/g, "/").replace(/\/$/, "");
  if (!/^\/(?:v1|v2|api)\//i.test(path)) {
    return "SDKs use this address followed by /v1 as their base URL";
  }
  const near = paths.includes(path) ? path : nearest(path, paths);
  return near === undefined ? "GET /openapi.json lists all paths" : `did you mean ${near}?`;
}

/**
 * Refuses bodies that are not plain UTF-8 JSON (compressed ones, other charsets) before they are
 * read.
 *
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE
 */
export function checkBodyForm({ headers }: Pick<IncomingMessage, "headers">): void {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") {
    const message =
      "The body must not be compressed: send it uncompressed, without the header `content-encoding`";
    throw new GatewayError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message);
  }
  const [, charset = "utf-8"] = charsetForm.exec(headers["content-type"] ?? "") ?? [];
  if (charsets.has(charset.toLowerCase())) return;
  const message =
    "The body must be JSON in UTF-8: send it in that encoding, with the header `content-type: application/json`";
  throw new GatewayError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, message);
}

const charsetForm = /^application\/json\s*;(?:.*;)?\s*charset\s*=\s*"?([^\s";]+)/i;

/** Names of UTF-8 and its subset ASCII. */
const charsets: ReadonlySet<string> = new Set(["utf-8", "utf8", "us-ascii", "ascii"]);

/** The error for a missing body. */
export function emptyBody(): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, "The body is empty: send a JSON object");
}

/** Statuses for which an SDK's retry would only repeat the failure. */
const neverRetry = new Set([401, 402, 403]);

/** Codes for which a retry could create a second job at the vendor (R-ERR-5). */
const neverAgain = new Set<SentErrorCode>([ErrorCode.UPSTREAM_SUBMIT_UNKNOWN]);

/** The response headers of an error. */
export function errorHeaders(error: GatewayError): Record<string, string> {
  const headers: Record<string, string> = { ...error.headers };
  if (error.retryAfterSeconds !== undefined) {
    headers["retry-after"] = String(error.retryAfterSeconds);
  }
  if (neverRetry.has(error.status) || neverAgain.has(error.code)) {
    headers["x-should-retry"] = "false";
  }
  return headers;
}

/** The request id in the reply's headers; empty if there is none. */
export function requestIdOf(reply: FastifyReply): string {
  const id = reply.getHeader("x-request-id");
  return typeof id === "string" ? id : "";
}

/** Sends an error in a dialect. */
export function sendError(
  reply: FastifyReply,
  dialect: DialectId,
  error: GatewayError,
): FastifyReply {
  const { status, headers, body } = errorReply(reply, dialect, error);
  return reply.code(status).headers(headers).send(body);
}

/** The reply with an error in a dialect, without the headers that `reply` has. */
export function errorReply(reply: FastifyReply, dialect: DialectId, error: GatewayError) {
  const body = JSON.stringify(dialects[dialect].errorBody(error, requestIdOf(reply)));
  const type = { "content-type": "application/json; charset=utf-8" };
  const headers = { ...errorHeaders(error), ...type };
  return { status: error.status, headers, body: Buffer.from(body) };
}
