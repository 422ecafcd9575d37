/**
 * `/files/{token}.{extension}`: serves result files. The token is the credential, so no API key is
 * needed and the token is never logged. Files are sent as attachments, with a file name.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { gatewayStopping } from "../../core/caller.ts";
import { resultReaderIdleMs, resultReadersMax } from "../../core/limits.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { dialects } from "../../dialect/index.ts";
import type { FacadeOptions, FindFile, ServedFile } from "./options.ts";
import { echoRequestId, notAllowed, prepareScope } from "./scope.ts";

/** A file that has not expired. */
type PresentFile = Extract<ServedFile, { readonly expired: false }>;

const fileName = /^([0-9A-Za-z]{26})\.([a-z0-9]{1,8})$/;

/**
 * Response headers for everything under `/files/`, errors too. Caches may keep existing files only.
 */
const headersAlways: Readonly<Record<string, string>> = {
  "cross-origin-resource-policy": "cross-origin",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

const url = "/files/:name";
const methods = ["GET", "HEAD"];

/** Registers the file route in a separate scope. */
export async function registerFiles(scope: FastifyInstance, options: FacadeOptions): Promise<void> {
  prepareScope(scope, { ...options, dialect: Dialect.PLATFORM });
  scope.addHook("onRequest", async (request, reply) => {
    reply.headers(headersAlways);
    echoRequestId(request, reply, dialects[Dialect.PLATFORM].requestIdHeaders);
    if (options.isOpen()) return;
    reply.header("connection", "close");
    throw gatewayStopping();
  });
  let readers = 0;
  scope.route<{ Params: { name: string } }>({
    method: methods,
    url,
    exposeHeadRoute: false,
    handler: async (request, reply) => {
      const file = await findFile(options.findFile, request.params.name);
      if (readers >= resultReadersMax) {
        const message = `${resultReadersMax} files are being sent already; try again in a moment`;
        throw new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, message);
      }
      readers += 1;
      reply.raw.on("close", () => void (readers -= 1));
      return serveFile(file, request, reply);
    },
  });
  scope.route({
    method: scope.supportedMethods.filter((method) => !methods.includes(method)),
    url,
    onRequest: async (request, reply) => {
      reply.header("allow", methods.join(", "));
      throw notAllowed(request.method, methods.join(", "));
    },
    handler: () => undefined,
  });
}

async function findFile(find: FindFile, name: string): Promise<PresentFile> {
  const [, token = "", extension = ""] = fileName.exec(name) ?? [];
  const file = token === "" ? undefined : await find(token);
  if (file?.expired) {
    const message = "The file has expired: result files are kept for 7 days";
    throw new GatewayError(ErrorCode.NOT_FOUND, message, { status: 410 });
  }
  if (file?.extension === extension) return file;
  throw new GatewayError(ErrorCode.NOT_FOUND, "There is no such file: check its address");
}

/** Sends the file, or the requested range of it. */
async function serveFile(
  file: PresentFile,
  { method, headers }: Pick<FastifyRequest, "method" | "headers">,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const etag = `"${file.sha256}"`;
  if (isSame(headers["if-none-match"], etag)) {
    return reply.code(304).headers(cacheHeaders(file, etag)).send();
  }
  const range = readRange(headers, file.bytes, etag);
  if (range === "unsatisfiable") {
    reply.header("content-range", `bytes */${file.bytes}`);
    const message = `The file has ${file.bytes} bytes: the requested range is empty`;
    throw new GatewayError(ErrorCode.INVALID_REQUEST, message, { status: 416 });
  }
  const { start, end } = range ?? { start: 0, end: file.bytes - 1 };
  const body = method === "HEAD" || end < start ? undefined : await file.open({ start, end });
  reply
    .code(range === undefined ? 200 : 206)
    .type(file.contentType)
    .headers(cacheHeaders(file, etag))
    .header("content-length", end - start + 1)
    .header("content-disposition", `attachment; filename="${nameOf(file)}"`);
  if (range) reply.header("content-range", `bytes ${start}-${end}/${file.bytes}`);
  if (body === undefined) return reply.send();
  // A client that reads no data for so long is gone, but still occupies a file descriptor.
  reply.raw.setTimeout(resultReaderIdleMs, () => reply.raw.destroy());
  reply.raw.on("close", () => body.destroy());
  return reply.send(body);
}

function cacheHeaders({ leftMs }: PresentFile, etag: string): Record<string, string> {
  const leftSeconds = Math.max(0, Math.floor(leftMs / 1_000));
  const cacheControl = `private, max-age=${leftSeconds}, immutable`;
  return { etag, "accept-ranges": "bytes", "cache-control": cacheControl };
}

/** The download name. Not the token, which is secret. */
function nameOf({ sha256, extension }: PresentFile): string {
  return `result-${sha256.slice(0, 12)}.${extension}`;
}

/** Whether the client's copy is current. Our tags contain no comma. */
function isSame(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes(etag) || tags.includes("*");
}

/** `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-COUNT`. */
const rangeForm = /^bytes=(?:(\d{1,15})-(\d{1,15})?|-(\d{1,15}))$/;

/**
 * The range to send; `undefined` for the whole file. Anything but a single range is answered with
 * the whole file, as HTTP allows: each of several ranges would need a separate read from storage.
 * The library `range-parser` is not used, since it refuses the last 100 bytes of a file that has
 * 50.
 */
function readRange(
  { range, "if-range": ifRange }: FastifyRequest["headers"],
  bytes: number,
  etag: string,
): { readonly start: number; readonly end: number } | "unsatisfiable" | undefined {
  if (range === undefined || (ifRange !== undefined && ifRange !== etag)) return undefined;
  const match = rangeForm.exec(range.trim());
  if (match === null) return undefined;
  const [, first, last = bytes, count = 0] = match;
  const start = first === undefined ? Math.max(0, bytes - Number(count)) : Number(first);
  const end = Math.min(Number(last), bytes - 1);
  if (first !== undefined && Number(last) < start)
    return start < bytes ? undefined : "unsatisfiable";
  return start <= end ? { start, end } : "unsatisfiable";
}
