/**
 * Routes of RPCs with one response: fields come from path, query and body, the response is in the
 * dialect's form.
 */
import {
  type DescField,
  type DescMessage,
  type DescMethodUnary,
  type JsonObject,
  ScalarType,
} from "@bufbuild/protobuf";
import { StructSchema } from "@bufbuild/protobuf/wkt";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { nearest } from "../../core/suggest.ts";
import { asBuffer } from "../../core/bytes.ts";
import { resolveRequestId } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { matchesEtag } from "../../core/etag.ts";
import { readOutline } from "../../dialect/body-members.ts";
import { dialects } from "../../dialect/index.ts";
import { findDuplicateMember } from "../../wire/json/duplicate-member.ts";
import { isRecord, type JsonRecord } from "../../wire/json/value.ts";
import { fieldHeaders } from "./deprecation.ts";
import { emptyBody, lacksName, nameMissing, noSuchPath, toGatewayError } from "./errors.ts";
import type { RouteContext } from "./options.ts";
import type { RestRoute } from "./route-table.ts";
import { readInput, rpcCaller } from "./rpc-input.ts";
import { abortWith, stopAll } from "./rest-call.ts";
import { constraintsOf } from "./when-header.ts";
import { inCallersSpelling } from "./field-names.ts";

/** Registers such a route. */
export function registerUnary(scope: FastifyInstance, context: RouteContext): void {
  const { route, transport, dialect, onRequest } = context;
  const method = route.method as DescMethodUnary;
  const { replyBody } = dialects[dialect];
  const running = stopAll(context.stopping);
  const readFields = route.route.method === "POST" ? bodyFields(context) : queryFields(context);
  const findHeaders = fieldHeaders(method.input);
  scope.route({
    method: route.route.method,
    url: route.url,
    constraints: constraintsOf(route),
    onRequest,
    async handler(request, reply) {
      const sent = readFields(request, reply);
      const fields = { ...sent, ...pathFieldsOf(route, request) };
      reply.headers(findHeaders?.(fields) ?? {});
      const { values, header } = rpcCaller(request);
      const input = readInput(method, fields);
      const { signal } = abortWith(reply.raw, running);
      const headers = { ...header, ...forwardedHeaders(request) };
      const answer = await transport
        .unary(method, signal, undefined, headers, input, values)
        .catch((error: unknown) => {
          throw inCallersSpelling(toGatewayError(error), sent);
        });
      if (passHeaders(answer.header, request, reply)) return reply.code(304).send();
      const body = replyBody(method.output, answer.message);
      return reply
        .type("application/json; charset=utf-8")
        .send(body instanceof Uint8Array ? asBuffer(body) : JSON.stringify(body));
    },
  });
}

type ReadFields = (request: FastifyRequest, reply: FastifyReply) => JsonObject;

/** Reads fields from the body. The query is ignored, since it may contain a key. */
function bodyFields({ route, dialect }: RouteContext): ReadFields {
  const { input } = route.method;
  const pathNames = [...route.route.path.matchAll(/\{(\w+)/g)].map(([, name = ""]) => name);
  const options = { input, pathFields: new Set(pathNames) };
  const names = dialects[dialect].requestIdHeaders;
  return (request, reply) => {
    const body = readJsonBody(request, options);
    takeRequestId(body, { request, reply, names });
    return body;
  };
}

/** Reads fields from the query. */
export function queryFields({ dialect }: RouteContext): ReadFields {
  const { queryFields: read = (query: JsonObject) => query } = dialects[dialect];
  return ({ query }) => read(query as JsonObject);
}

/** Reads fields from the path. */
export function pathFieldsOf(
  { url, restField, restSuffix }: RestRoute,
  request: FastifyRequest,
): JsonObject {
  const params = request.params as Record<string, string>;
  if (lacksName(params)) throw nameMissing(request.method, request.url, url);
  const { "*": rest = "", ...fields } = params;
  if (restField === undefined) return fields;
  if (!rest.endsWith(restSuffix)) throw noSuchPath(request.method, request.url);
  return { ...fields, [restField]: rest.slice(0, rest.length - restSuffix.length) };
}

/**
 * Uses the id in the body's `requestContext` if the headers contain no valid one. From then on it
 * is the request's id in the reply, in errors and in the log.
 *
 * @param names the headers that carry the id
 */
function takeRequestId(
  body: JsonObject,
  {
    request,
    reply,
    names,
  }: {
    readonly request: FastifyRequest;
    readonly reply: FastifyReply;
    readonly names: readonly string[];
  },
): void {
  const { state, headers } = request;
  const context = body["requestContext"] ?? body["request_context"];
  if (state === undefined || state.requestId === "" || !isRecord(context)) return;
  const bodyId = context["requestId"] ?? context["request_id"];
  const isSent = [headers["x-request-id"], headers["request-id"]].includes(state.requestId);
  if (isSent || typeof bodyId !== "string" || resolveRequestId(bodyId) !== bodyId) return;
  request.state = { ...state, requestId: bodyId };
  for (const name of names) reply.header(name, bodyId);
}

/** Request headers that RPCs read. */
const requestHeaders = ["if-none-match", "idempotency-key", "traceparent"] as const;

/** Response headers that RPCs set. Others are dropped: they are part of the RPC protocol. */
const replyHeaders = ["etag", "retry-after", "idempotent-replayed"] as const;

/** The request headers that RPCs read. */
function forwardedHeaders({ headers }: FastifyRequest): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of requestHeaders) {
    const value = headers[name];
    if (typeof value === "string") passed[name] = value;
  }
  return passed;
}

/**
 * Copies the RPC's response headers.
 *
 * @returns whether the client's copy is current, so that the answer is 304 without a body
 */
function passHeaders(header: Headers, request: FastifyRequest, reply: FastifyReply): boolean {
  for (const name of replyHeaders) {
    const value = header.get(name);
    if (value !== null) reply.header(name, value);
  }
  const etag = header.get("etag");
  if (etag === null) return false;
  // Without it, an intermediate cache could keep answering for hours.
  reply.header("cache-control", "private, no-cache");
  return request.method === "GET" && matchesEtag(request.headers["if-none-match"], etag);
}

/** Options of {@link readJsonBody}. */
interface JsonBodyOptions {
  readonly input: DescMessage;
  /** Fields that are in the path, by their names in the contract. */
  readonly pathFields: ReadonlySet<string>;
}

/**
 * Reads a JSON body. Member names are the contract's, in camelCase or snake_case. The body may be
 * omitted if all fields are in the path.
 *
 * @throws GatewayError INVALID_REQUEST, naming members that are unknown, repeated or of the wrong
 * type
 */
function readJsonBody(
  { body }: FastifyRequest,
  { input, pathFields }: JsonBodyOptions,
): JsonObject {
  const fields = input.fields.filter(({ name }) => !pathFields.has(name));
  if (!Buffer.isBuffer(body) || body.length === 0) {
    if (fields.length === 0) return {};
    throw emptyBody();
  }
  readOutline(body);
  const twice = findDuplicateMember(body);
  if (twice !== undefined) throw invalid([twice.path], "occurs twice in the body; send it once");
  const record = JSON.parse(body.toString("utf8")) as JsonObject;
  checkMembers(record, fields, "");
  return record;
}

/**
 * Checks the names and types that the contract's JSON reader would report without naming the
 * member.
 */
function checkMembers(record: JsonRecord, fields: readonly DescField[], path: string): void {
  const known = new Map(
    fields.flatMap((each) => [
      [each.jsonName, each],
      [each.name, each],
    ]),
  );
  const unknown = Object.keys(record).filter((name) => !known.has(name));
  if (unknown.length > 0) {
    const takes = fields.map(({ jsonName }) => path + jsonName).join(", ");
    const shownNames = unknown.slice(0, namesMax).map((name) => path + name.slice(0, nameCharsMax));
    const meant = nearest(
      unknown[0] ?? "",
      fields.map(({ jsonName }) => jsonName),
    );
    const guess = meant === undefined ? "" : `, did you mean \`${path}${meant}\`?`;
    const rule = `not known${guess || ";"} the body takes ${takes}`;
    throw invalid(shownNames, takes === "" ? "this body must be empty" : rule);
  }
  checkOneofs(record, fields, path);
  const seen = new Set<DescField>();
  for (const [name, value] of Object.entries(record)) {
    const field = known.get(name);
    if (field === undefined) continue;
    if (seen.has(field)) throw invalid([path + name], "occurs twice; send it once");
    seen.add(field);
    if (value !== null) checkValue(value, field, path + name);
  }
}

/** Of fields that exclude each other only one can be sent. */
function checkOneofs(record: JsonRecord, fields: readonly DescField[], path: string): void {
  const given = fields.flatMap(({ oneof, name, jsonName }) => {
    const sent = [jsonName, name].find((each) => (record[each] ?? null) !== null);
    return oneof === undefined || sent === undefined ? [] : [{ oneof, sent: path + sent }];
  });
  for (const members of Map.groupBy(given, ({ oneof }) => oneof).values()) {
    const [, second] = members;
    if (second === undefined) continue;
    const names = members.map(({ sent }) => sent).join(", ");
    throw invalid([second.sent], `send exactly one of ${names}`);
  }
}

/** @param name the path of the member, as the caller wrote it */
function checkValue(value: unknown, field: DescField, name: string): void {
  if (field.fieldKind === "scalar" && field.scalar === ScalarType.STRING) {
    if (typeof value !== "string") throw invalid([name], "must be a text");
    if (!value.isWellFormed()) throw invalid([name], "must be well-formed Unicode");
  }
  if (field.fieldKind !== "message") return;
  if (!isRecord(value)) throw invalid([name], "must be an object");
  const { message } = field;
  if (message.typeName === StructSchema.typeName) return;
  checkMembers(value, message.fields, `${name}.`);
}

/** Maximum number of unknown names that an error lists, and of characters of each. */
const namesMax = 10;
const nameCharsMax = 64;

function invalid(names: readonly string[], rule: string): GatewayError {
  const [param = ""] = names;
  return new GatewayError(ErrorCode.INVALID_REQUEST, `${names.join(", ")}: ${rule}`, { param });
}
