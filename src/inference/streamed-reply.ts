/** A vendor's streamed reply on its way to the caller. */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../billing/price.ts";
import type { GatewayError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import type { VendorBody } from "../vendor/vendor.ts";
import type { Call } from "./call.ts";
import type { Chunk, ReplyStream } from "./door.ts";
import type { PassedReply } from "./passed-reply.ts";
import { failureError } from "./upstream-refusal.ts";

/** What a {@link StreamedReply} needs. */
export interface StreamedReplyOptions<Out> {
  readonly call: Call;
  readonly stream: ReplyStream<Out>;
  readonly body: VendorBody;
}

/** Reads the vendor, passes on what comes, and ends the reply before its vendor does where it must. */
export class StreamedReply<Out extends Chunk> implements PassedReply<Out> {
  readonly length = undefined;
  /** At how many bytes of text {@link onLook} is told. A comparison for each read is all that it costs. */
  lookAtBytes = Number.POSITIVE_INFINITY;
  onLook: () => void = () => {};

  readonly #options: StreamedReplyOptions<Out>;
  #usage: Usage | undefined;
  #textBytes = 0;
  #isDone = false;
  /** How the gateway ended it: with what usage, or with which failure. */
  #cut: { readonly usage: Usage | undefined } | GatewayError | undefined;
  #isCutTold = false;

  constructor(options: StreamedReplyOptions<Out>) {
    this.#options = options;
  }

  /** What the vendor reported so far. */
  get usage(): Usage | undefined {
    return this.#usage;
  }

  /** Bytes of generated text so far. */
  get textBytes(): number {
    return this.#textBytes;
  }

  /** What was made beside text so far. */
  get units(): UnitUsage | undefined {
    return this.#options.stream.units;
  }

  /** Whether its terminal event is out: nothing can be missing any more. */
  get isDone(): boolean {
    return this.#isDone;
  }

  /** Whether the vendor ended the reply itself, well or not. */
  get isOver(): boolean {
    const { stream } = this.#options;
    return stream.finished || stream.failed;
  }

  /** Whether all of it has been read. */
  get isComplete(): boolean {
    return this.#options.stream.finished;
  }

  /** Whether it was {@link stop}ped. */
  get isStopped(): boolean {
    return this.#cut !== undefined && "usage" in this.#cut;
  }

  /** Why it was {@link fail}ed. */
  get failure(): GatewayError | undefined {
    return this.#cut !== undefined && "usage" in this.#cut ? undefined : this.#cut;
  }

  /** Ends it as one that came to its limit of tokens: the vendor is stopped, {@link rest} ends the reply. */
  stop(usage: Usage | undefined): void {
    this.#end({ usage });
  }

  /** Ends it as one that failed: {@link ready} rejects. */
  fail(error: GatewayError): void {
    this.#end(error);
  }

  /** Resolves to whether there is something to {@link take}; false at the end. */
  ready(): Promise<boolean> {
    const { stream, body, call } = this.#options;
    if (this.#cut !== undefined) {
      return this.failure ? Promise.reject(this.failure) : Promise.resolve(false);
    }
    if (stream.failed) {
      call.end(CallEnding.UPSTREAM_FAILED, failureError("reset", undefined));
      return Promise.resolve(false);
    }
    return body.ready();
  }

  /** What has come for the client; empty where no event is complete yet. */
  take(): Out {
    const { stream, body, call } = this.#options;
    const passed = stream.push(body.take());
    this.#track(stream);
    if (passed.length > 0) call.answered();
    if (this.#textBytes >= this.lookAtBytes) this.onLook();
    return passed;
  }

  /** What is left for the client once {@link ready} has said no; `undefined`: nothing. Throws where the
   * stream was cut. */
  rest(): Out | undefined {
    const { stream } = this.#options;
    if (this.#cut !== undefined && "usage" in this.#cut) {
      if (this.#isCutTold) return undefined;
      this.#isCutTold = true;
      return stream.stop(this.#cut.usage);
    }
    if (stream.failed) return undefined;
    const last = stream.end();
    this.#track(stream);
    if (last.length > 0) return last;
    // The connection closed in good order, but had the vendor said that it was done?
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
    return undefined;
  }

  /** The event that ends a stream which failed; empty: the caller is told by the failure itself. */
  errorEvent(told: GatewayError): Out {
    return this.#options.stream.errorEvent(told);
  }

  /** Reads what is still to come, for nobody. */
  async drain(): Promise<void> {
    try {
      while (await this.ready()) this.take();
      this.rest();
    } catch {
      // What came until then is known, and there is nobody to be told.
    }
  }

  #end(cut: { readonly usage: Usage | undefined } | GatewayError): void {
    if (this.#cut !== undefined || this.isOver) return;
    this.#cut = cut;
    // Wakes whoever waits for the vendor.
    this.#options.body.cancel();
  }

  #track({ usage, textBytes, done }: ReplyStream<Out>): void {
    this.#usage = usage;
    this.#textBytes = textBytes;
    this.#isDone = done;
  }
}
