/**
 * What a client's disconnect means for the vendor's reply and for its charge (R-TXT-9, R-MON-11): decided here and
 * nowhere else.
 *
 * | when the client disconnects | the vendor | charged |
 * |---|---|---|
 * | before the whole request was sent | is stopped | nothing |
 * | after that, before content | is stopped; read to its end where it is drained or its model reasons | the input, estimated; or what it reports |
 * | after the first content | is read on for the grace, or to its end where it is drained or its model reasons | what it reports; else the input and what came, estimated |
 *
 * `on_disconnect: abort` stops the vendor at once: what it does not report is estimated. At most
 * {@link detachedRepliesMax} replies of a process are read for clients that have disconnected; the vendors of more are
 * stopped. Where the gateway stops, vendors are stopped, and the call ends as `gateway_stopped`.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { CancelSource, type CancelSignal } from "../../core/cancel-signal.ts";
import { GatewayStopping } from "../../core/caller.ts";
import { detachedRepliesMax, detachedReplyMs } from "../../config/limits.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Call } from "./call.ts";

/** What {@link DisconnectHandler} needs. */
export interface DisconnectHandlerOptions {
  /** Cancelled when the client disconnects or the gateway stops. */
  readonly client: CancelSignal;
  readonly detached: DetachedReplies;
  readonly call: Call;
}

/** Between a client and the vendors that are asked for it. */
export class DisconnectHandler {
  readonly #options: DisconnectHandlerOptions;
  /** Stops vendors whose replies are read on after a disconnect; made only where there is one. */
  #vendor: CancelSource | undefined;
  #detachedReadMs = 0;
  #isDetached = false;

  constructor(options: DisconnectHandlerOptions) {
    this.#options = options;
  }

  /** Whether the client has disconnected while its vendor continues. */
  get isDetached(): boolean {
    return this.#isDetached;
  }

  /** Whether the client has disconnected, or the gateway stops. */
  get isCancelled(): boolean {
    return this.#options.client.aborted;
  }

  /** Whether it is the gateway that stops. */
  get isStopping(): boolean {
    return this.#options.client.reason instanceof GatewayStopping;
  }

  /** What stops a vendor. @param detachedReadMs how long its reply is read on after a disconnect, see {@link PlannedRoute} */
  signalFor(detachedReadMs: number): CancelSignal {
    const { client } = this.#options;
    // Nobody waits any more: a vendor that was not asked yet is not asked.
    if (client.aborted || detachedReadMs === 0) return client;
    this.#detachedReadMs = detachedReadMs;
    if (this.#vendor === undefined) {
      this.#vendor = new CancelSource();
      client.addEventListener("abort", this.#onDisconnect);
    }
    return this.#vendor;
  }

  /** The vendor's reply has ended. */
  end(): void {
    if (this.#vendor === undefined) return;
    this.#options.client.removeEventListener("abort", this.#onDisconnect);
    this.#options.detached.end(this.#vendor);
  }

  /** Names the ending of a call that failed with `told`. @param isDone whether the client has the whole reply */
  endFailed(error: GatewayError, isDone: boolean): void {
    const { call } = this.#options;
    if (isDone) call.end(CallEnding.COMPLETED);
    else if (this.isCancelled) this.#endCancelled(error);
    else call.endFailed(error);
  }

  /** Names the ending of a call whose reply was delivered as far as its client took it. */
  endDelivered(isDone: boolean): void {
    // The client went away between two writes, or did not read while the gateway stopped: nobody threw.
    const unread = this.isStopping ? CallEnding.GATEWAY_STOPPED : CallEnding.CLIENT_GONE;
    this.#options.call.end(isDone ? CallEnding.COMPLETED : unread);
  }

  #endCancelled(error: GatewayError): void {
    const { call } = this.#options;
    if (this.isStopping) {
      call.end(CallEnding.GATEWAY_STOPPED, error);
      return;
    }
    if (call.status === 0) call.status = 499;
    call.end(CallEnding.CLIENT_GONE);
  }

  readonly #onDisconnect = (): void => {
    const { client, detached, call } = this.#options;
    const vendor = this.#vendor;
    if (vendor === undefined) return;
    const isRead = this.#detachedReadMs === Number.POSITIVE_INFINITY || call.firstByteMs > 0;
    if (this.isStopping || !isRead || !detached.begin(vendor, this.#detachedReadMs)) {
      vendor.cancel(client.reason);
      return;
    }
    this.#isDetached = true;
    if (call.status === 0) call.status = 499;
    call.end(CallEnding.CLIENT_GONE);
  };
}

/** Replies consumed after their clients disconnected: bounded in time and in number. */
export class DetachedReplies {
  /** How each of them is stopped. */
  readonly #running = new Map<CancelSource, NodeJS.Timeout>();
  #isOpen = true;

  /** How many run. */
  get count(): number {
    return this.#running.size;
  }

  /**
   * Begins one: `vendor` is stopped after `readOnMs` milliseconds, at the latest after {@link detachedReplyMs}.
   *
   * @returns false where there are too many, or the gateway stops
   */
  begin(vendor: CancelSource, detachedReadMs: number): boolean {
    if (!this.#isOpen || this.#running.size >= detachedRepliesMax) return false;
    const limitMs = Math.min(detachedReadMs, detachedReplyMs);
    const timer = setTimeout(() => vendor.cancel(), limitMs).unref();
    this.#running.set(vendor, timer);
    return true;
  }

  /** One has ended, or never began. */
  end(vendor: CancelSource): void {
    clearTimeout(this.#running.get(vendor));
    this.#running.delete(vendor);
  }

  /** Stops all of them, and lets none begin. */
  stop(): void {
    this.#isOpen = false;
    for (const vendor of this.#running.keys()) vendor.cancel();
  }
}
