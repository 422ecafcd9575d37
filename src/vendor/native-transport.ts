/** How a vendor is reached in its own form. */
import type { CancelSignal } from "../cancel-signal.ts";
import type { NativeHeadersFor } from "./native.ts";
import type { VendorReply } from "./vendor.ts";

/** Reaches a vendor in its own form. */
export interface NativeTransport {
  /** Its addresses; the first is the usual one. Fixed by the configuration, never by a request. */
  readonly bases: readonly [NativeBase, ...NativeBase[]];
  /** What it wants to see with its own files. */
  readonly headersFor: NativeHeadersFor;
  /** Sends a request, with the operator's credential. Follows no redirect. @throws HttpFailure */
  send(request: NativeSend): Promise<VendorReply>;
  close(): Promise<void>;
}

/** One address of a vendor, and where below the prefix it is served. */
export interface NativeBase {
  /** For `target` of a route. */
  readonly name: string;
  /** Without a trailing slash, such as `https://api.replicate.com`. */
  readonly url: string;
  /** Empty, or a path such as `/queue`. */
  readonly below: string;
}

/** A request to a vendor. */
export interface NativeSend {
  /** The name of the address. */
  readonly base: string;
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Path and query, with a leading slash. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  /** In pieces. */
  readonly body: readonly Buffer[];
  /** Whether it may take longer than the timeouts are for text: its client waits for the work to be done. */
  readonly isPatient?: boolean;
  readonly signal: CancelSignal;
}
