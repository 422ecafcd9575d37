/** What vendors share that are reached by one POST per text generation. */
import type { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { VendorConfig } from "../config/config.ts";
import { type VendorDialectId, vendorDialects } from "../dialect/index.ts";
import { createHttpClient } from "../http/client.ts";
import type { Vendor, VendorCall } from "./vendor.ts";

/** What one kind does in its own way. */
export interface HttpVendorOptions {
  /** What the kind speaks. The configuration may restrict it. */
  readonly dialects: readonly Dialect[];
  /** The headers that carry the credential. */
  readonly credential: Readonly<Record<string, string>>;
  /** The path and query that a call goes to, below the base address. */
  readonly target: (call: VendorCall) => Target;
  /** Headers that go with a call where the caller sent none of that name. Default: none. */
  readonly defaultHeaders?: Readonly<Record<string, string>>;
  readonly faultOf?: NonNullable<Vendor["faultOf"]>;
  readonly retryAfterOf?: NonNullable<Vendor["retryAfterOf"]>;
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
  const { credential, target, defaultHeaders, faultOf, retryAfterOf } = options;
  const base = new URL(config.baseUrl);
  const basePath = base.pathname.replace(/\/+$/, "");
  const client = createHttpClient(base.origin, config.timeouts);
  return {
    name: config.name,
    dialects: spoken(options.dialects, config),
    exchange: (call) => {
      const { path, query } = target(call);
      return client.send({
        method: "POST",
        path: `${basePath}${path}${query === "" ? "" : `?${query}`}`,
        headers: {
          ...defaultHeaders,
          ...call.headers,
          "content-type": "application/json",
          ...credential,
        },
        body: call.body,
        signal: call.signal,
      });
    },
    ...(faultOf && { faultOf }),
    ...(retryAfterOf && { retryAfterOf }),
    close: () => client.close(),
  };
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
