/**
 * Decides what a client's disconnect means for the vendor's reply and for the charge (R-TXT-9,
 * R-MON-11). No other file decides this. The edge cancels the client's signal: for REST, `#onClose`
 * in src/edge/rest/rest-call.ts.
 *
 * | when the client disconnects | the vendor | charged |
 * |---|---|---|
 * | before the whole request was sent | is not called, or is stopped | nothing |
 * | after that, before content | is stopped; a text that is not streamed is read for the grace period; read to its end with `drain` or a reasoning model | the input, estimated; or what it reports |
 * | after the first content | is read for the grace period; to its end with `drain` or a reasoning model | what it reports; else the input and the received text, estimated |
 *
 * `on_disconnect: abort` stops the vendor at once: what it does not report is estimated. A process
 * reads at most {@link detachedRepliesMax} replies after their clients disconnected; further
 * vendors are stopped. A gateway that stops waits for running calls first; then it stops the
 * vendors, and the calls end as `gateway_stopped`.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CancelSource, type CancelSignal } from "../../core/cancel-signal.ts";
import { GatewayStopping } from "../../core/caller.ts";
import { detachedRepliesMax, detachedReplyMs } from "../../core/limits.ts";
import { GatewayError } from "../../core/errors.ts";
import type { HttpFailure } from "../../http/failure.ts";
import type { Call } from "./call.ts";

/** Options of {@link DisconnectHandler}. */
export interface DisconnectHandlerOptions {
  /** Cancelled when the client disconnects or the gateway stops. */
  readonly client: CancelSignal;
  readonly detached: DetachedReplies;
  readonly call: Call;
}

/**
 * Handles the disconnect of one call's client: stops the vendor or detaches its reply, and names
 * the ending.
 */
export class DisconnectHandler {
  readonly #options: DisconnectHandlerOptions;
  /**
   * Stops the vendor; separate from the client's signal, so that the reply can outlive the client.
   */
  #vendor: AttemptSignal | undefined;
  #detachedReadMs = 0;
  #isWholeText = false;
  #isDetached = false;
  #isListening = false;

  constructor(options: DisconnectHandlerOptions) {
    this.#options = options;
  }

  /** Whether the client disconnected while the vendor continues. */
  get isDetached(): boolean {
    return this.#isDetached;
  }

  /** Whether the client disconnected or the gateway is stopping. */
  get isCancelled(): boolean {
    return this.#options.client.aborted;
  }

  /** Whether the gateway is stopping. */
  get isStopping(): boolean {
    return this.#options.client.reason instanceof GatewayStopping;
  }

  /**
   * Returns the signal that stops the vendor of an attempt.
   *
   * @param detachedReadMs see {@link PlannedRoute}
   * @param isWholeText whether the reply is a text that is not streamed. It shows nothing before
   * its end: a client that disconnects just before that would pay for none of the output. Default
   * false
   */
  signalFor(detachedReadMs: number, isWholeText = false): CancelSignal {
    const { client } = this.#options;
    // Without a client no further attempt is made.
    if (client.aborted) return client;
    this.#detachedReadMs = detachedReadMs;
    this.#isWholeText = isWholeText;
    this.#vendor ??= new AttemptSignal();
    this.#vendor.isSent = false;
    if (!this.#isListening) client.addEventListener("abort", this.#onDisconnect);
    this.#isListening = true;
    return this.#vendor;
  }

  /** Stops the vendor of the current attempt. Each further attempt has a separate signal. */
  stopAttempt(reason: HttpFailure): void {
    const vendor = this.#vendor;
    this.#vendor = undefined;
    vendor?.cancel(reason);
  }

  /** Releases the listener and the timer. Call it when the vendor's reply has ended. */
  end(): void {
    if (!this.#isListening) return;
    this.#options.client.removeEventListener("abort", this.#onDisconnect);
    if (this.#vendor !== undefined) this.#options.detached.end(this.#vendor);
  }

  /** Names the ending of a failed call. @param isDone whether the client has the whole reply */
  endFailed(error: GatewayError, isDone: boolean): void {
    const { call } = this.#options;
    if (isDone) call.end(CallEnding.COMPLETED);
    else if (this.isCancelled) this.#endCancelled(error);
    else call.endFailed(error);
  }

  /**
   * Names the ending of a call whose delivery did not fail. @param isDone whether the client has
   * the whole reply
   */
  endDelivered(isDone: boolean): void {
    // The client disconnected between two writes, or did not read while the gateway stopped:
    // nothing was thrown.
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

  /** Whether the reply to a request that was sent is read on. */
  #isReadOn(hasContent: boolean): boolean {
    const isBegun = hasContent || this.#isWholeText;
    return (
      this.#detachedReadMs === Number.POSITIVE_INFINITY || (this.#detachedReadMs > 0 && isBegun)
    );
  }

  readonly #onDisconnect = (): void => {
    const { client, detached, call } = this.#options;
    const vendor = this.#vendor;
    if (vendor === undefined) return;
    const hasContent = call.firstByteMs > 0;
    const isRead = (vendor.isSent || hasContent) && this.#isReadOn(hasContent);
    if (this.isStopping || !isRead || !detached.begin(vendor, this.#detachedReadMs)) {
      vendor.cancel(client.reason);
      return;
    }
    this.#isDetached = true;
    if (call.status === 0) call.status = 499;
    call.end(CallEnding.CLIENT_GONE);
  };
}

/**
 * Stops the vendor of an attempt, and records whether the vendor has the whole request: it works
 * and charges only then.
 */
class AttemptSignal extends CancelSource {
  isSent = false;

  onSent(): void {
    this.isSent = true;
  }
}

/** Replies that are read after their clients disconnected: limited in time and in number. */
export class DetachedReplies {
  /** The timer that stops each vendor. */
  readonly #running = new Map<CancelSource, NodeJS.Timeout>();
  #isOpen = true;

  /** Number of detached replies. */
  get count(): number {
    return this.#running.size;
  }

  /**
   * Detaches a reply: its vendor is stopped after `detachedReadMs`, at the latest after {@link
   * detachedReplyMs}.
   *
   * @returns false if there are too many, or the gateway is stopping
   */
  begin(vendor: CancelSource, detachedReadMs: number): boolean {
    if (!this.#isOpen || this.#running.size >= detachedRepliesMax) return false;
    const limitMs = Math.min(detachedReadMs, detachedReplyMs);
    const timer = setTimeout(() => vendor.cancel(), limitMs).unref();
    this.#running.set(vendor, timer);
    return true;
  }

  /** Removes a reply that has ended; harmless if it was never detached. */
  end(vendor: CancelSource): void {
    clearTimeout(this.#running.get(vendor));
    this.#running.delete(vendor);
  }

  /** Stops all vendors, and detaches no further replies. */
  stop(): void {
    this.#isOpen = false;
    for (const vendor of this.#running.keys()) vendor.cancel();
  }
}
