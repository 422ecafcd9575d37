/** The context of native calls: the mounted vendor APIs, the services of other rooms, and one request. */
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { Ledger } from "../billing/ledger/ledger.ts";
import type { VendorConfig } from "../config/config.ts";
import type { KeyCaller } from "../core/caller.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { Metrics } from "../core/metrics.ts";
import type { Sink } from "../core/sink.ts";
import type { AddressEdit } from "../dialect/json/addresses.ts";
import type { Catalogue } from "../inference/catalogue.ts";
import type { InferenceHandlers } from "../inference/handlers.ts";
import type { RunningCalls } from "../inference/running-calls.ts";
import type { ExternalTasks } from "../task/external.ts";
import type { NativeTransport } from "../vendor/native-http.ts";
import type { NativeApi, NativeRoute } from "../vendor/native.ts";
import type { Vendor } from "../vendor/vendor.ts";
import type { NativeBody } from "./body.ts";
import type { JobTracker } from "./job-tracker.ts";
import type { Links } from "./links.ts";
import type { FindNativeModel } from "./models.ts";

/** A vendor's native API, mounted under a path prefix. */
export interface NativeMount {
  /** With its leading slash. */
  readonly prefix: string;
  readonly vendor: Vendor;
  readonly config: VendorConfig;
  readonly api: NativeApi;
  readonly transport: NativeTransport;
  readonly requestHeaders: HeaderList;
  readonly responseHeaders: HeaderList;
}

/** What the handlers use of other rooms. */
export interface NativeContext {
  /** By prefix. */
  readonly vendors: ReadonlyMap<string, NativeMount>;
  readonly findModel: FindNativeModel;
  readonly catalogue: Catalogue;
  readonly handlers: Pick<InferenceHandlers, "runAdapter">;
  readonly calls: RunningCalls;
  readonly ledger: Pick<Ledger, "record">;
  readonly pool: Pool;
  readonly external: ExternalTasks;
  readonly jobTracker: JobTracker;
  readonly links: Links;
  /** Hosts of callbacks that are exempt from the public-address rule. */
  readonly allowHosts: readonly string[];
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Where customers reach the gateway, without a trailing slash; known once it listens. */
  readonly publicUrl: () => string;
}

/** One request with its route. */
export interface NativeExchange<Route extends NativeRoute = NativeRoute> {
  readonly mount: NativeMount;
  readonly route: Route;
  readonly request: NativeBody;
  /** As the client sent it. */
  readonly method: Route["method"];
  /** Below the prefix. */
  readonly path: string;
  readonly query: string;
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** Cancelled when the client disconnects or the gateway stops. */
  readonly signal: CancelSignal;
  /** Where the reply goes. */
  readonly sink: NativeSink;
}

/** Receives a native reply. */
export type NativeSink = Sink<Buffer>;

/** Rewrites the vendor's addresses to the gateway's, for replies. */
export function outwardAddresses(
  { mount: { prefix, api, transport } }: Pick<NativeExchange, "mount">,
  publicUrl: string,
): readonly AddressEdit[] {
  const members = new Set(api.urlMembers);
  return transport.bases.map(({ url, below }) => ({
    from: url,
    to: `${publicUrl}${prefix}${below}`,
    members,
  }));
}

/** Rewrites the gateway's addresses to the vendor's, for requests. */
export function inwardAddresses(
  exchange: Pick<NativeExchange, "mount">,
  publicUrl: string,
): readonly AddressEdit[] {
  // In any member: a customer may use the address of a file wherever a model takes one.
  return outwardAddresses(exchange, publicUrl).map(({ from, to }) => ({ from: to, to: from }));
}

type Headers = Readonly<Record<string, string>>;

/** Whether a header passes. */
type HeaderList = (name: string) => boolean;

/** Headers that never pass, whatever a table says: credentials, and those of one connection. */
const never =
  /^(?:authorization|proxy-.*|cookie|set-cookie2?|x-api-key|api-key|x-goog-api-key|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-encoding|content-length|expect|forwarded|x-forwarded-.*|location|server|via|x-request-id|request-id)$/;

/** Creates an allow list of headers; `x-goog-upload-*` stands for all with that prefix. */
export function headerList(names: readonly string[]): HeaderList {
  const whole = new Set(names.filter((name) => !name.endsWith("*")));
  const starts = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return (name) =>
    !never.test(name) && (whole.has(name) || starts.some((start) => name.startsWith(start)));
}

/** The headers that pass an allow list. */
export function passHeaders(headers: Headers, list: HeaderList): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => list(name)));
}
