/** What the handler knows: of its vendors, and of one request. */
import type { Pool } from "pg";
import type { Logger } from "pino";
import type { KeyCaller } from "../caller.ts";
import type { CancelSignal } from "../cancel-signal.ts";
import type { Ledger } from "../billing/ledger.ts";
import type { VendorConfig } from "../config/config.ts";
import type { Catalogue } from "../inference/catalogue.ts";
import type { InferenceHandlers } from "../inference/handlers.ts";
import type { Sink } from "../sink.ts";
import type { RunningCalls } from "../inference/running-calls.ts";
import type { Metrics } from "../metrics.ts";
import type { OutsideTasks } from "../task/outside.ts";
import type { NativeTransport } from "../vendor/native-transport.ts";
import type { NativeApi, NativeRoute } from "../vendor/native.ts";
import type { Vendor } from "../vendor/vendor.ts";
import type { NativeBody } from "./body.ts";
import type { Following } from "./following.ts";
import type { HeaderList } from "./headers.ts";
import type { Links } from "./links.ts";
import type { FindNativeModel } from "./models.ts";
import type { AddressEdit } from "../dialect/json/addresses.ts";

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
