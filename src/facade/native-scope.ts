/**
 * Vendors' own interfaces: everything below a prefix goes to NativeService as it came, bytes and address. A scope
 * of its own for each: what Fastify does for JSON elsewhere (it refuses empty bodies and bytes that call themselves
 * JSON, decodes parameters, reads a colon as the beginning of one) breaks vendors' clients.
 */
import { create } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import {
  type ExchangeRequest,
  ExchangeRequestSchema,
  FollowLinkRequestSchema,
  NativeService,
} from "../../gen/uas/native/v1/native_service_pb.ts";
import { anonymous, gatewayStopping, missingKey, presentedKey } from "../caller.ts";
import { abortWith, stopAll } from "./abort.ts";
import { checkBodyForm, requestIdOf, sendErrorBody } from "./errors.ts";
import { pass } from "./exchange-route.ts";
import type { FacadeOptions, NativePrefix } from "./options.ts";
import { rpcCaller } from "./rpc-caller.ts";
import { authenticate, echoRequestId, headerText, prepareScope, queryKey } from "./scope.ts";

/** What one prefix needs. */
export interface NativeScopeOptions extends FacadeOptions {
  readonly native: NativePrefix;
}

/** A comment of event streams: every vendor's client skips it. */
const keepAlive = Buffer.from(":\n\n");

/** Registers one prefix. */
export async function registerNative(
  scope: FastifyInstance,
  options: NativeScopeOptions,
): Promise<void> {
  const { native, transport, stopping } = options;
  prepareScope(scope, { ...options, dialect: Dialect.PLATFORM }, (reply, error) =>
    sendErrorBody(reply, error, native.errorBody(error, requestIdOf(reply))),
  );
  scope.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) =>
    done(null, body),
  );
  const running = stopAll(stopping);
  const { exchange, followLink } = NativeService.method;
  scope.all(`${native.prefix}/*`, {
    onRequest: (request, reply) => identify(request, reply, options),
    async handler(request, reply) {
      const { values, header } = rpcCaller(request);
      const { signal } = abortWith(reply.raw, running);
      const token = linkOf(request, native);
      const message = readRequest(request, native);
      request.isRecorded = native.isRecorded(message.method, message.path);
      const { prefix, headers } = message;
      const response =
        token === undefined
          ? await transport.stream(exchange, signal, undefined, header, single(message), values)
          : await transport.stream(
              followLink,
              signal,
              undefined,
              header,
              single(create(FollowLinkRequestSchema, { prefix, token, headers })),
              values,
            );
      const parts = response.message[Symbol.asyncIterator]();
      const first = await parts.next();
      // Until here every failure is answered like any other; from here on the stream is ours.
      if (first.done || first.value.part.case !== "head") throw new Error("no head came first");
      const head = first.value.part.value;
      const isEvents = (head.headers["content-type"] ?? "").startsWith("text/event-stream");
      await pass(reply, head, { parts, keepAlive: isEvents ? keepAlive : undefined });
      return reply;
    },
  });
}

async function* single<T>(value: T): AsyncIterable<T> {
  yield value;
}

/** Who calls, before the body is read. */
async function identify(
  request: FastifyRequest,
  reply: FastifyReply,
  options: NativeScopeOptions,
): Promise<void> {
  const { isOpen, metrics, native } = options;
  const requestId = echoRequestId(request, reply, ["x-request-id"]);
  if (!isOpen()) {
    reply.header("connection", "close");
    throw gatewayStopping();
  }
  if (linkOf(request, native) !== undefined) {
    // A capability: neither a cache nor a referrer may give it away.
    reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
    request.state = { requestId, key: "", caller: anonymous };
    return;
  }
  const key = keyIn(request, reply, native);
  if (key === undefined) {
    metrics.authFailures.inc({ reason: "missing" });
    throw missingKey();
  }
  const [path = ""] = (request.raw.url ?? "").split("?", 1);
  const isCall = native.isRecorded(request.method, path.slice(native.prefix.length));
  const presented = { key, requestId, path: isCall ? path : undefined };
  const caller = await authenticate(request, options, presented);
  request.state = { requestId, key, caller };
  if (request.method !== "GET") checkBodyForm(request);
}

/** The token of an address that is a key for itself; `undefined`: it is another. */
function linkOf({ method, raw }: FastifyRequest, { prefix }: NativePrefix): string | undefined {
  if (method !== "GET" || !raw.url?.startsWith(`${prefix}/_s/`)) return undefined;
  return /^[\w-]+$/.exec(raw.url.slice(`${prefix}/_s/`.length))?.[0];
}

/** The platform's three places, then the vendor's own: the first one that is there decides (R-AUTH-1). */
function keyIn(
  request: FastifyRequest,
  reply: FastifyReply,
  { keyForms }: NativePrefix,
): string | undefined {
  const { headers, url } = request;
  const query = queryKey(url);
  const usual = presentedKey({
    authorization: headers.authorization,
    apiKeyHeader: headerText(headers["x-api-key"]),
    apiKeyQuery: query,
  });
  const own = keyForms.map((form) => {
    if (form.in === "header") return headerText(headers[form.name])?.trim();
    if (form.in === "query") return queryKey(url, form.name)?.trim();
    const [scheme = "", ...rest] = (headers.authorization ?? "").trim().split(/ +/);
    return scheme.toLowerCase() === form.scheme.toLowerCase() ? rest.join(" ") : undefined;
  });
  const isInUrl =
    query !== undefined ||
    keyForms.some((form) => form.in === "query" && queryKey(url, form.name) !== undefined);
  if (isInUrl) {
    // The key stands in the URL: keep the answer out of caches, and the URL out of referrers.
    reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
  }
  return usual ?? own.find((key) => key !== undefined && key !== "");
}

/** The request as it came, without its keys. */
function readRequest(
  { raw, method, headers, body }: FastifyRequest,
  { prefix, keyForms }: NativePrefix,
): ExchangeRequest {
  const url = raw.url ?? "";
  const at = url.indexOf("?");
  const path = at < 0 ? url : url.slice(0, at);
  const secret = new Set(["api-key"]);
  const hidden = new Set(secretHeaders);
  for (const form of keyForms) {
    if (form.in === "query") secret.add(form.name);
    if (form.in === "header") hidden.add(form.name);
  }
  const isOpen = (pair: string): boolean =>
    [...new URLSearchParams(pair).keys()].every((name) => !secret.has(name));
  const pairs = at < 0 ? [] : url.slice(at + 1).split("&");
  return create(ExchangeRequestSchema, {
    prefix,
    method,
    // A path that only becomes one below the prefix by decoding is none.
    path: path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : "",
    query: pairs.filter(isOpen).join("&"),
    headers: Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) => {
        const one = hidden.has(name) ? undefined : headerText(value);
        return one === undefined ? [] : [[name, one]];
      }),
    ),
    body: Buffer.isBuffer(body) ? body : new Uint8Array(),
  });
}

/** What no service needs to know. The native room takes those that the vendor's table names. */
const secretHeaders = new Set(["authorization", "x-api-key", "cookie"]);
