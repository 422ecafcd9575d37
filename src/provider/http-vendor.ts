/** Common base of vendors that take one POST per text generation. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { vendorWorkMs } from "../core/limits.ts";
import { vendorDialects, type VendorDialectId } from "../dialect/index.ts";
import { createHttpClient } from "../http/client.ts";
import type { NativeTransport } from "./native-http.ts";
import { inForm, type OperationForm } from "./operation-form.ts";
import type { VendorReply } from "./reply.ts";
import type { OpenTasks } from "./task.ts";
import type {
  BodyOperationName,
  MediaOperationName,
  OperationName,
  ResponseStateCall,
  Vendor,
  VendorCall,
  VendorOperation,
} from "./vendor.ts";

/** Differences between vendor kinds. */
interface HttpVendorOptions {
  /** The dialects of the kind; the configuration may restrict them. */
  readonly dialects: readonly Dialect[];
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  /**
   * Path and query of a text generation, below the base URL. Default: the kind generates no text.
   */
  readonly target?: (call: VendorCall) => Target;
  /** Headers added if the caller sent none of that name. Default: none. */
  readonly defaultHeaders?: Readonly<Record<string, string>>;
  /** Paths for counting tokens, by dialect. Default: none. */
  readonly countTokens?: ReadonlyMap<Dialect, string>;
  /** Paths for compacting conversations, by dialect. Default: none. */
  readonly compact?: ReadonlyMap<Dialect, string>;
  /** Paths or transports of embeddings, moderations and legacy completions. Default: none. */
  readonly operations?: Readonly<Partial<Record<BodyOperationName, string | OperationRoute>>>;
  /** The paths for images and audio. Default: none. */
  readonly media?: Readonly<Partial<Record<MediaOperationName, string>>>;
  /** Whether the vendor stores responses, below `/responses`. Default false. */
  readonly keepsResponses?: boolean;
  readonly faultOf?: NonNullable<Vendor["faultOf"]>;
  readonly retryAfterOf?: NonNullable<Vendor["retryAfterOf"]>;
  /** Runs tasks; closed with the vendor. Default: no tasks. */
  readonly tasks?: OpenTasks;
  /** The native API; closed with the vendor. Default: none. */
  readonly native?: NativeTransport;
}

/** Transport of an operation whose path differs by call, or whose form differs at the vendor. */
export interface OperationRoute {
  /** The dialects of its requests. Default: chat completions. */
  readonly dialects?: readonly Dialect[];
  readonly path: (call: VendorCall) => string;
  /** Converts requests and replies. Default: they pass unchanged. */
  readonly form?: OperationForm;
}

/** The operations of a table, by their names. */
function mapped<Route>(
  table: Readonly<Partial<Record<OperationName, Route>>>,
  create: (route: Route) => VendorOperation,
): Partial<Record<OperationName, VendorOperation>> {
  return Object.fromEntries(Object.entries(table).map(([name, route]) => [name, create(route)]));
}

/** An operation whose requests are one JSON body. */
function bodyOperation(
  route: string | OperationRoute,
  post: (call: VendorCall, target: Target) => Promise<VendorReply>,
): VendorOperation {
  const { dialects, path, form }: OperationRoute =
    typeof route === "string" ? { path: () => route } : route;
  const send = (call: VendorCall) => post(call, { path: path(call), query: call.query });
  return {
    dialects: new Set(dialects ?? [Dialect.CHAT_COMPLETIONS]),
    send: form === undefined ? send : inForm(form, send),
  };
}

/** Both versions of rerank. */
export const rerankDialects: readonly Dialect[] = [Dialect.RERANK, Dialect.RERANK_V2];

/** The destination of a call. */
export interface Target {
  /** With a leading slash. */
  readonly path: string;
  /** Without the question mark; empty for none. */
  readonly query: string;
}

/** Creates a vendor of a kind. */
export function createHttpVendor(config: VendorConfig, options: HttpVendorOptions): Vendor {
  const { credential, defaultHeaders, faultOf, retryAfterOf, countTokens, compact } = options;
  const { tasks, native, media = {}, operations = {} } = options;
  const base = new URL(config.baseUrl);
  const basePath = base.pathname.replace(/\/+$/, "");
  const client = createHttpClient(base.origin, config.timeouts, credential);
  const dialects = allowedDialects(options.dialects, config);
  const post = (call: VendorCall, { path, query }: Target, firstByteMs?: number) =>
    client.send({
      method: "POST",
      path: `${basePath}${path}${query === "" ? "" : `?${query}`}`,
      headers: {
        ...defaultHeaders,
        ...call.headers,
        "content-type": call.contentType ?? "application/json",
        ...credential,
      },
      body: call.body,
      isPatient: call.isPatient,
      firstByteMs,
      signal: call.signal,
    });
  const operation = (
    paths: ReadonlyMap<Dialect, string>,
    firstByteMs?: number,
  ): VendorOperation => ({
    dialects: new Set(paths.keys()),
    send: (call) =>
      post(call, { path: pathOf(paths, call.dialect), query: call.query }, firstByteMs),
  });
  const workMs = Math.max(config.timeouts.firstByteMs, vendorWorkMs);
  const sentHeaders = { accept: "application/json", ...defaultHeaders, ...credential };
  const keepsResponses = options.keepsResponses === true && dialects.has(Dialect.RESPONSES);
  return {
    name: config.name,
    dialects,
    exchange: (call) => post(call, options.target?.(call) ?? noText(config)),
    ...(countTokens && { countTokens: operation(restrictOperation(countTokens, dialects)) }),
    ...(compact && { compact: operation(restrictOperation(compact, dialects), workMs) }),
    ...mapped(operations, (route) => bodyOperation(route, post)),
    ...mapped(media, (path) => operation(new Map([[Dialect.CHAT_COMPLETIONS, path]]), workMs)),
    ...(keepsResponses && {
      responseState: (call) => client.send(stateRequest(call, basePath, sentHeaders)),
    }),
    ...(faultOf && { faultOf }),
    ...(retryAfterOf && { retryAfterOf }),
    ...(tasks && { tasks }),
    ...(native && { native }),
    close: async () => {
      await Promise.all([client.close(), tasks?.close(), native?.close()]);
    },
  };
}

function noText({ name }: VendorConfig): never {
  throw new TypeError(`${name} generates no text`);
}

/** Restricts an operation to the configured dialects. */
function restrictOperation(
  paths: ReadonlyMap<Dialect, string>,
  allowed: ReadonlySet<Dialect>,
): ReadonlyMap<Dialect, string> {
  return new Map([...paths].filter(([dialect]) => allowed.has(dialect)));
}

/** The request for a stored response. */
function stateRequest(
  call: ResponseStateCall,
  basePath: string,
  headers: Readonly<Record<string, string>>,
) {
  const { action, query, signal } = call;
  const method: "DELETE" | "GET" = action === "delete" ? "DELETE" : "GET";
  const path = `${basePath}${responsePath(call)}${query === "" ? "" : `?${query}`}`;
  return { method, path, headers, body: [], signal };
}

function responsePath({ action, responseId }: ResponseStateCall): string {
  const path = `/responses/${encodeURIComponent(responseId)}`;
  return action === "list-input-items" ? `${path}/input_items` : path;
}

/** The path for a dialect. @throws TypeError if the kind does not speak it */
export function pathOf(paths: ReadonlyMap<Dialect, string>, dialect: Dialect): string {
  const path = paths.get(dialect);
  if (path === undefined) throw new TypeError(`dialect ${dialect} is not spoken by this vendor`);
  return path;
}

/** Whether the base URL already ends in this segment. */
export function baseUrlEndsWith(config: VendorConfig, segment: string): boolean {
  return new URL(config.baseUrl).pathname.replace(/\/+$/, "").endsWith(segment);
}

/** The credential as a bearer token; no header if there is no key. */
export function bearerHeader(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
}

/** The kind's dialects that the configuration allows. */
function allowedDialects(dialects: readonly Dialect[], config: VendorConfig): ReadonlySet<Dialect> {
  const word = (dialect: Dialect): string => vendorDialects[dialect as VendorDialectId].word;
  const allowed = config.dialects;
  return new Set(dialects.filter((each) => allowed === undefined || allowed.includes(word(each))));
}

/**
 * The `error` member of an error body, if it is an object. The body may be anything, such as a
 * proxy's page or truncated. Google's streams wrap it in a list of one.
 */
export function errorMember(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  // The first event of each stream is checked, and few are errors. A name may be written with
  // escapes.
  if (!body.includes('"error"') && !body.includes("\\")) return undefined;
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  return isObject(first) && isObject(first["error"]) ? first["error"] : undefined;
}

/** A string member; empty if it is none. */
export function textMember(object: Readonly<Record<string, unknown>>, name: string): string {
  const value = object[name];
  return typeof value === "string" ? value : "";
}

/** The objects in a list member. */
export function objectsMember(
  object: Readonly<Record<string, unknown>>,
  name: string,
): ReadonlyArray<Readonly<Record<string, unknown>>> {
  const value = object[name];
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
