/** What vendors share that are reached by one POST per text generation. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { vendorDialects, type VendorDialectId } from "../dialect/index.ts";
import { createHttpClient } from "../http/client.ts";
import type { NativeTransport } from "./native-http.ts";
import type { OpenTasks } from "./task.ts";
import type {
  ResponseStateCall,
  Vendor,
  VendorCall,
  VendorOperation,
  VendorReply,
} from "./vendor.ts";

/** What one kind does in its own way. */
interface HttpVendorOptions {
  /** What the kind speaks. The configuration may restrict it. */
  readonly dialects: readonly Dialect[];
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  /** The path and query that a call goes to, below the base address. */
  readonly target: (call: VendorCall) => Target;
  /** Headers that go with a call where the caller sent none of that name. Default: none. */
  readonly defaultHeaders?: Readonly<Record<string, string>>;
  /** Where tokens are counted, by dialect. Default: nowhere. */
  readonly countTokens?: ReadonlyMap<Dialect, string>;
  /** Where embeddings are made. Default: nowhere. */
  readonly embed?: string;
  /** Whether the vendor keeps responses, below `/responses`. Default: not. */
  readonly keepsResponses?: boolean;
  readonly faultOf?: NonNullable<Vendor["faultOf"]>;
  readonly retryAfterOf?: NonNullable<Vendor["retryAfterOf"]>;
  /** How it runs tasks; closed with the vendor. Default: it does not. */
  readonly tasks?: OpenTasks;
  /** How it is reached in its own form; closed with the vendor. Default: not at all. */
  readonly native?: NativeTransport;
}

/** Where a call goes. */
export interface Target {
  /** With a leading slash. */
  readonly path: string;
  /** Without its question mark; empty: none. */
  readonly query: string;
}

/** Makes a vendor of a kind. */
export function createHttpVendor(config: VendorConfig, options: HttpVendorOptions): Vendor {
  const { credential, target, defaultHeaders, faultOf, retryAfterOf, countTokens, embed } = options;
  const { tasks, native } = options;
  const base = new URL(config.baseUrl);
  const basePath = base.pathname.replace(/\/+$/, "");
  const client = createHttpClient(base.origin, config.timeouts);
  const dialects = spoken(options.dialects, config);
  const post = (call: VendorCall, { path, query }: Target) =>
    client.send({
      method: "POST",
      path: `${basePath}${path}${query === "" ? "" : `?${query}`}`,
      headers: {
        ...defaultHeaders,
        ...call.headers,
        "content-type": "application/json",
        ...credential,
      },
      body: call.body,
      isPatient: call.isPatient,
      signal: call.signal,
    });
  const operation = (paths: ReadonlyMap<Dialect, string>): VendorOperation => ({
    dialects: new Set(paths.keys()),
    send: (call) => post(call, { path: pathOf(paths, call.dialect), query: call.query }),
  });
  const keepsResponses = options.keepsResponses === true && dialects.has(Dialect.RESPONSES);
  const responseState = (call: ResponseStateCall): Promise<VendorReply> => {
    const { action, query, signal } = call;
    const method = action === "delete" ? "DELETE" : "GET";
    const path = `${basePath}${responsePath(call)}${query === "" ? "" : `?${query}`}`;
    const headers = { accept: "application/json", ...defaultHeaders, ...credential };
    return client.send({ method, path, headers, body: [], signal });
  };
  return {
    name: config.name,
    dialects,
    exchange: (call) => post(call, target(call)),
    ...(countTokens && { countTokens: operation(onlyThose(countTokens, dialects)) }),
    ...(embed && { embed: operation(new Map([[Dialect.CHAT_COMPLETIONS, embed]])) }),
    ...(keepsResponses && { responseState }),
    ...(faultOf && { faultOf }),
    ...(retryAfterOf && { retryAfterOf }),
    ...(tasks && { tasks }),
    ...(native && { native }),
    close: async () => {
      await Promise.all([client.close(), tasks?.close(), native?.close()]);
    },
  };
}

/** Without what the configuration does not allow. */
function onlyThose(
  paths: ReadonlyMap<Dialect, string>,
  allowed: ReadonlySet<Dialect>,
): ReadonlyMap<Dialect, string> {
  return new Map([...paths].filter(([dialect]) => allowed.has(dialect)));
}

function responsePath({ action, responseId }: ResponseStateCall): string {
  const path = `/responses/${encodeURIComponent(responseId)}`;
  return action === "list-input-items" ? `${path}/input_items` : path;
}

/** The address of a dialect, from a table. @throws TypeError where the kind does not speak it */
export function pathOf(paths: ReadonlyMap<Dialect, string>, dialect: Dialect): string {
  const path = paths.get(dialect);
  if (path === undefined) throw new TypeError(`dialect ${dialect} is not spoken by this vendor`);
  return path;
}

/** Whether the base address ends in this segment already. */
export function endsWith(config: VendorConfig, segment: string): boolean {
  return new URL(config.baseUrl).pathname.replace(/\/+$/, "").endsWith(segment);
}

/** The credential as a bearer token; nothing where the vendor wants none. */
export function bearer(apiKey: string | undefined): Readonly<Record<string, string>> {
  return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
}

/** What the kind speaks of what the configuration allows. */
function spoken(dialects: readonly Dialect[], config: VendorConfig): ReadonlySet<Dialect> {
  const word = (dialect: Dialect): string => vendorDialects[dialect as VendorDialectId].word;
  const allowed = config.dialects;
  return new Set(dialects.filter((each) => allowed === undefined || allowed.includes(word(each))));
}

/** Reads vendors' error bodies, which may be anything: a page of a proxy, or cut off. */

/** The body's `error` member where it is an object. Google's streams wrap the whole in a list of one. */
export function errorMember(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
  const first: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  return isObject(first) && isObject(first["error"]) ? first["error"] : undefined;
}

/** A member as text; empty where it is none. */
export function textMember(object: Readonly<Record<string, unknown>>, name: string): string {
  const value = object[name];
  return typeof value === "string" ? value : "";
}

/** The members of a list member that are objects. */
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
