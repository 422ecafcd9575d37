/** Failures of HTTP itself, and how any failure is sent. */
import type { IncomingMessage } from "node:http";
import { ConnectError } from "@connectrpc/connect";
import type { FastifyReply } from "fastify";
import { bodyBytesMax } from "../config/limits.ts";
import { dialects, type DialectId } from "../dialect/index.ts";
import {
  ErrorCode,
  fromRpcError,
  GatewayError,
  internalError,
  type SentErrorCode,
} from "../core/errors.ts";

/** Reads any failure as one with a documented code. */
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
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => notJson(),
  FST_ERR_CTP_BODY_TOO_LARGE: () => bodyTooLarge(),
  FST_ERR_CTP_EMPTY_JSON_BODY: () => emptyBody(),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => wrongLength(),
};

/** What is said of a body that does not call itself JSON. */
export function notJson(): GatewayError {
  return new GatewayError(
    ErrorCode.UNSUPPORTED_MEDIA_TYPE,
    "The body must be JSON: send the header `content-type: application/json`",
  );
}

/** What is said of a body that is too long. */
export function bodyTooLarge(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `The body is longer than ${bodyBytesMax} bytes; send less, or refer to large files by URL`,
  );
}

/** What is said of a body that is longer or shorter than its head says. */
export function wrongLength(): GatewayError {
  return new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "The body does not have the length that content-length says",
  );
}

/** What is said of a path that is not here. The path is told back without its query: a key may stand there. */
export function noSuchPath(method: string, url: string): GatewayError {
  const path = (url.split("?")[0] ?? "").slice(0, 200);
  return new GatewayError(
    ErrorCode.NOT_FOUND,
    `There is no ${method} ${path} here; SDKs use this address followed by /v1 as their base`,
  );
}

/**
 * Refuses bodies that are not plain JSON in UTF-8, before they are read: compressed ones, and other character sets.
 *
 * @throws GatewayError UNSUPPORTED_MEDIA_TYPE
 */
export function checkBodyForm({ headers }: Pick<IncomingMessage, "headers">): void {
  const encoding = headers["content-encoding"]?.trim().toLowerCase() ?? "";
  if (encoding !== "" && encoding !== "identity") {
    const told =
      "The body must not be compressed: send it as it is, without the header `content-encoding`";
    throw new GatewayError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, told);
  }
  const [, charset = "utf-8"] = charsetForm.exec(headers["content-type"] ?? "") ?? [];
  if (charsets.has(charset.toLowerCase())) return;
  const told =
    "The body must be JSON in UTF-8: encode it so, and send the header `content-type: application/json`";
  throw new GatewayError(ErrorCode.UNSUPPORTED_MEDIA_TYPE, told);
}

const charsetForm = /^application\/json\s*;(?:.*;)?\s*charset\s*=\s*"?([^\s";]+)/i;

/** UTF-8 by its names, and what is a part of it. */
const charsets: ReadonlySet<string> = new Set(["utf-8", "utf8", "us-ascii", "ascii"]);

/** What is said where a body is needed and none came. */
export function emptyBody(): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, "The body is empty: send a JSON object");
}

/** Statuses on which the SDKs' own retry would only repeat the failure. */
const neverRetry = new Set([401, 402, 403]);

/** Codes where a repetition could make a second job at the vendor (R-ERR-5). */
const neverAgain = new Set<SentErrorCode>([ErrorCode.UPSTREAM_SUBMIT_UNKNOWN]);

/** The headers that go with an error. */
export function errorHeaders(error: GatewayError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined) {
    headers["retry-after"] = String(error.retryAfterSeconds);
  }
  if (neverRetry.has(error.status) || neverAgain.has(error.code)) {
    headers["x-should-retry"] = "false";
  }
  return headers;
}

/** The request id that the answer tells in its header; empty: none. */
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
  return sendErrorBody(reply, error, dialects[dialect].errorBody(error, requestIdOf(reply)));
}

/** Sends an error with a body in any form. */
export function sendErrorBody(
  reply: FastifyReply,
  error: GatewayError,
  body: object,
): FastifyReply {
  return reply
    .code(error.status)
    .headers(errorHeaders(error))
    .type("application/json; charset=utf-8")
    .send(JSON.stringify(body));
}
