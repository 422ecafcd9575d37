/** A vendor's streamed reply on its way to the caller. */
import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/price.ts";
import type { GatewayError } from "../../errors.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { VendorBody } from "../../vendor/vendor.ts";
import { failureError } from "../upstream-refusal.ts";
import type { Chunk, ReplyStream } from "./adapter.ts";
import type { Call } from "./call.ts";

/** What a {@link StreamReply} needs. */
export interface StreamReplyOptions<Out> {
  readonly call: Call;
  readonly stream: ReplyStream<Out>;
  readonly body: VendorBody;
}

/** How the gateway ended a reply: with which usage, or with which failure. */
type Cut = { readonly usage: Usage | undefined } | { readonly failure: GatewayError };

/**
 * Reads the vendor, and ends the reply before its vendor does where it must. Read as
 * `while (await reply.ready()) use(reply.take())`, then {@link rest}.
 */
export class StreamReply<Out extends Chunk> {
  readonly #call: Call;
  readonly #stream: ReplyStream<Out>;
  readonly #body: VendorBody;
  #cut: Cut | undefined;
  #isStopTold = false;

  constructor({ call, stream, body }: StreamReplyOptions<Out>) {
    this.#call = call;
    this.#stream = stream;
    this.#body = body;
  }

  /** What the vendor reported so far. */
  get usage(): Usage | undefined {
    return this.#stream.usage;
  }

  /** Bytes of generated text so far. */
  get textBytes(): number {
    return this.#stream.textBytes;
  }

  /** Billable units other than tokens so far. */
  get units(): UnitUsage | undefined {
    return this.#stream.units;
  }

  /** Whether its terminal event is out: nothing can be missing any more. */
  get isDone(): boolean {
    return this.#stream.done;
  }

  /** Whether the vendor ended the reply itself, well or not. */
  get isOver(): boolean {
    return this.#stream.finished || this.#stream.failed;
  }

  /** Whether all of it has come from the vendor. */
  get isComplete(): boolean {
    return this.#stream.finished;
  }

  /** Whether the gateway ended it as one that reached its limit. */
  get isStopped(): boolean {
    return this.#cut !== undefined && "usage" in this.#cut;
  }

  /** Why the gateway broke it off; `undefined`: it did not. */
  get failure(): GatewayError | undefined {
    return this.#cut !== undefined && "failure" in this.#cut ? this.#cut.failure : undefined;
  }

  /** Ends it as one that reached its token limit: the vendor is stopped, {@link rest} ends the reply. */
  stop(usage: Usage | undefined): void {
    this.#end({ usage });
  }

  /** Ends it as one that failed: {@link ready} rejects. */
  fail(failure: GatewayError): void {
    this.#end({ failure });
  }

  /** Resolves to whether there is something to {@link take}; false at the end. */
  ready(): Promise<boolean> {
    if (this.#cut !== undefined) {
      return this.failure ? Promise.reject(this.failure) : Promise.resolve(false);
    }
    if (this.#stream.failed) {
      this.#call.end(CallEnding.UPSTREAM_FAILED, failureError("reset", undefined));
      return Promise.resolve(false);
    }
    return this.#body.ready();
  }

  /** What has come for the client; empty where no event is complete yet. */
  take(): Out {
    const passed = this.#stream.push(this.#body.take());
    if (passed.length > 0) this.#call.answered();
    return passed;
  }

  /** What is left for the client once {@link ready} has said no; `undefined`: nothing. Throws where the
   * stream was cut. */
  rest(): Out | undefined {
    const stream = this.#stream;
    if (this.#cut !== undefined && "usage" in this.#cut) {
      if (this.#isStopTold) return undefined;
      this.#isStopTold = true;
      return stream.stop(this.#cut.usage);
    }
    if (stream.failed) return undefined;
    const last = stream.end();
    if (last.length > 0) return last;
    // The connection closed in good order, but had the vendor said that it was done?
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
    return undefined;
  }

  /** The event that ends a stream which failed; empty: the caller is told by the failure itself. */
  errorEvent(told: GatewayError): Out {
    return this.#stream.errorEvent(told);
  }

  #end(cut: Cut): void {
    if (this.#cut !== undefined || this.isOver) return;
    this.#cut = cut;
    // Wakes whoever waits for the vendor.
    this.#body.cancel();
  }
}
