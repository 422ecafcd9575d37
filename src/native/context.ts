/** What the handler knows: of its vendors, and of one request. */
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
import type { OutsideTasks } from "../task/external.ts";
import type { NativeTransport } from "../vendor/native-http.ts";
import type { NativeApi, NativeRoute } from "../vendor/native.ts";
import type { Vendor } from "../vendor/vendor.ts";
import type { NativeBody } from "./body.ts";
import type { Following } from "./following.ts";
import type { Links } from "./links.ts";
import type { FindNativeModel } from "./models.ts";

/** A vendor that is served under a prefix. */
export interface NativeVendor {
  /** With its leading slash. */
  readonly prefix: string;
  readonly vendor: Vendor;
  readonly config: VendorConfig;
  readonly api: NativeApi;
  readonly transport: NativeTransport;
  readonly requestHeaders: HeaderList;
  readonly responseHeaders: HeaderList;
}

/** What the handler needs of the rest. */
export interface NativeContext {
  /** By prefix. */
  readonly vendors: ReadonlyMap<string, NativeVendor>;
  readonly findModel: FindNativeModel;
  readonly catalogue: Catalogue;
  readonly handlers: Pick<InferenceHandlers, "through">;
  readonly calls: RunningCalls;
  readonly ledger: Pick<Ledger, "record">;
  readonly pool: Pool;
  readonly outside: OutsideTasks;
  readonly following: Following;
  readonly links: Links;
  /** Hosts of callbacks that are exempt from the public-address rule. */
  readonly allowHosts: readonly string[];
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Where customers reach the gateway, without a trailing slash; known once it listens. */
  readonly publicUrl: () => string;
}

/** One request, its route found. */
export interface NativeAsk<Route extends NativeRoute = NativeRoute> {
  readonly at: NativeVendor;
  readonly route: Route;
  readonly request: NativeBody;
  /** As it was sent. */
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

/** Where a reply in a vendor's own form goes. */
export type NativeSink = Sink<Buffer>;

/** The vendor's addresses as ours, for what goes to the customer. */
export function outwardAddresses(
  { at: { prefix, api, transport } }: Pick<NativeAsk, "at">,
  publicUrl: string,
): readonly AddressEdit[] {
  const members = new Set(api.urlMembers);
  return transport.bases.map(({ url, below }) => ({
    from: url,
    to: `${publicUrl}${prefix}${below}`,
    members,
  }));
}

/** Ours as the vendor's, for what goes to it. */
export function inwardAddresses(
  ask: Pick<NativeAsk, "at">,
  publicUrl: string,
): readonly AddressEdit[] {
  // A customer may put the address of a file of his own wherever a model takes one.
  return outwardAddresses(ask, publicUrl).map(({ from, to }) => ({ from: to, to: from }));
}

/** Which headers pass, in either direction: those that a vendor's table names, and no others. Pure. */

type Headers = Readonly<Record<string, string>>;

/** Tells whether a header is on a list; `x-goog-upload-*` stands for all that begin so. */
type HeaderList = (name: string) => boolean;

/** What never passes, whatever a table says: credentials, and what belongs to one connection. */
const never =
  /^(?:authorization|proxy-.*|cookie|set-cookie2?|x-api-key|api-key|x-goog-api-key|host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-encoding|content-length|expect|forwarded|x-forwarded-.*|location|server|via|x-request-id|request-id)$/;

/** Makes a list. */
export function headerList(names: readonly string[]): HeaderList {
  const whole = new Set(names.filter((name) => !name.endsWith("*")));
  const starts = names.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return (name) =>
    !never.test(name) && (whole.has(name) || starts.some((start) => name.startsWith(start)));
}

/** The headers of a list. */
export function passHeaders(headers: Headers, list: HeaderList): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => list(name)));
}
