/** A vendor's mounted native API, one request to it, and the rewriting of its addresses. */
import type { VendorConfig } from "../config/config.ts";
import type { Vendor } from "../provider/vendor.ts";
import type { Sink } from "../core/sink.ts";
import type { NativeTransport } from "../provider/native-http.ts";
import type { NativeRoute, NativeApi } from "../provider/native.ts";
import type { NativeBody } from "./body.ts";
import type { KeyCaller } from "../core/caller.ts";
import type { CancelSignal } from "../core/cancel-signal.ts";
import type { AddressEdit } from "../wire/json/addresses.ts";

/** Whether a header passes. */
export type HeaderList = (name: string) => boolean;

/** A vendor's native API, mounted under a path prefix. */
export interface NativeMount {
  /** With its leading slash. */
  readonly prefix: string;
  readonly vendor: Vendor;
  readonly config: VendorConfig;
  readonly api: NativeApi;
  readonly transport: NativeTransport;
  /** The name of its credential; empty for the vendor's only or first one. */
  readonly credential: string;
  /** The same vendor with each of its credentials, if there are several. */
  readonly byCredential: ReadonlyMap<string, NativeMount>;
  readonly requestHeaders: HeaderList;
  readonly responseHeaders: HeaderList;
}

/**
 * The mount with the credential to which an object or a job belongs. @param credential empty: the
 * first
 */
export function withCredential(mount: NativeMount, credential: string): NativeMount {
  return mount.byCredential.get(credential) ?? mount;
}

/**
 * The name of a vendor's first credential, whose objects may have no credential's name. Empty if it
 * has only one.
 */
export function firstCredential({ config }: Pick<NativeMount, "config">): string {
  return config.credentials?.[0]?.name ?? "";
}

/** One request with its route. */
export interface NativeExchange<Route extends NativeRoute = NativeRoute> {
  readonly mount: NativeMount;
  readonly route: Route;
  readonly request: NativeBody;
  /** The method that the client sent. */
  readonly method: Route["method"];
  /** Below the prefix. */
  readonly path: string;
  readonly query: string;
  readonly caller: KeyCaller;
  readonly requestId: string;
  /** See {@link CallContext}. */
  readonly idempotencyKey?: string | undefined;
  /** See {@link CallContext}. */
  readonly traceparent?: string | undefined;
  /** Cancelled when the client disconnects or the gateway stops. */
  readonly signal: CancelSignal;
  /** The destination of the reply. */
  readonly sink: NativeSink;
}

/** Receives a native reply. */
export type NativeSink = Sink<Buffer>;

/** The addresses of a mount, which its calls have in common. */
interface MountAddresses {
  readonly publicUrl: string;
  readonly outward: readonly AddressEdit[];
  readonly inward: readonly AddressEdit[];
}

const known = new WeakMap<NativeMount, MountAddresses>();

/** The public path of a request, as its call record has it. */
export function callPath({ mount, path }: Pick<NativeExchange, "mount" | "path">): string {
  return `${mount.prefix}${path}`.slice(0, 256);
}

/** Rewrites the vendor's addresses to the gateway's, for replies. */
export function outwardAddresses(
  { mount }: Pick<NativeExchange, "mount">,
  publicUrl: string,
): readonly AddressEdit[] {
  return addressesOf(mount, publicUrl).outward;
}

/** Rewrites the gateway's addresses to the vendor's, for requests. */
export function inwardAddresses(
  { mount }: Pick<NativeExchange, "mount">,
  publicUrl: string,
): readonly AddressEdit[] {
  return addressesOf(mount, publicUrl).inward;
}

function addressesOf(mount: NativeMount, publicUrl: string): MountAddresses {
  const same = known.get(mount);
  if (same?.publicUrl === publicUrl) return same;
  const { prefix, api, transport } = mount;
  const members = new Set(api.urlMembers);
  const outward = transport.bases.map(({ url, below }) => ({
    from: url,
    to: `${publicUrl}${prefix}${below}`,
    members,
  }));
  // In any member: a customer may use the address of a file in any member that a model reads.
  const inward = outward.map(({ from, to }) => ({ from: to, to: from }));
  const addresses = { publicUrl, outward, inward };
  known.set(mount, addresses);
  return addresses;
}
