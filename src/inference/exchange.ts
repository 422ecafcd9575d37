/**
 * The life of one text generation, phase by phase: read → hold → ask → pass on, and settle last, which
 * always runs. It knows dialects by their interface only, and nothing of REST.
 */
import { create } from "@bufbuild/protobuf";
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  type ExchangeRequest,
  type ExchangeResponse,
  ExchangeResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { type ExchangeContext, type ExchangeOptions, Run } from "./run.ts";

/** Runs one call. A failure before the head is thrown; one after it ends the body as its dialect does. */
export type Exchange = (
  request: ExchangeRequest,
  context: ExchangeContext,
) => AsyncIterableIterator<ExchangeResponse>;

export function createExchange(options: ExchangeOptions): Exchange {
  return (request, context) => new Exchanging(options, new Run(options, request, context));
}

type Part = IteratorResult<ExchangeResponse, undefined>;

/**
 * The parts of one reply. By hand, not as a generator: that would cost three promises for each part
 * instead of one, a tenth of what passing a chunk costs.
 */
class Exchanging implements AsyncIterableIterator<ExchangeResponse, undefined> {
  readonly #run: Run;
  readonly #calls: ExchangeOptions["calls"];
  #phase: "opening" | "passing" | "ending" = "opening";
  /** The read under way, or the last one. */
  #read: Promise<unknown> = Promise.resolve();
  #isCounted = false;
  #ended: Promise<void> | undefined;

  constructor({ calls }: ExchangeOptions, run: Run) {
    this.#calls = calls;
    this.#run = run;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Part> {
    const part =
      this.#phase === "passing"
        ? this.#pass()
        : this.#phase === "opening"
          ? this.#open()
          : this.#end();
    this.#read = part;
    return part;
  }

  /** Ends the call after the read that is under way. One that was never read has not begun. */
  async return(): Promise<Part> {
    if (this.#phase === "opening") this.#ended = Promise.resolve();
    await this.#read.catch(() => {});
    return this.#end();
  }

  async #open(): Promise<Part> {
    const run = this.#run;
    this.#phase = "ending";
    try {
      this.#calls.enter();
      this.#isCounted = true;
      run.read();
      await run.hold();
      await run.ask();
      const value = create(ExchangeResponseSchema, { part: { case: "head", value: run.head() } });
      this.#phase = "passing";
      return { done: false, value };
    } catch (error) {
      const told = run.fail(error);
      await this.#end();
      throw told;
    }
  }

  async #pass(): Promise<Part> {
    const run = this.#run;
    try {
      while (await run.ready()) {
        const bytes = run.take();
        if (bytes.length === 0) continue;
        run.call.passed();
        return chunk(bytes);
      }
      const rest = run.rest();
      if (rest.length > 0) return chunk(rest);
      run.call.end(CallEnding.COMPLETED);
    } catch (error) {
      const told = run.fail(error);
      this.#phase = "ending";
      if (run.call.ending !== CallEnding.COMPLETED) return chunk(run.errorEvent(told));
    }
    return this.#end();
  }

  /** The client waits for its settlement a moment, so that it can find its call at once; not longer: the
   * reply is out, and the settlement is made whether anybody waits for it or not. */
  async #end(): Promise<Part> {
    this.#phase = "ending";
    this.#ended ??= orLater(
      this.#run.settle().finally(() => {
        if (this.#isCounted) this.#calls.leave();
      }),
    );
    await this.#ended;
    return { done: true, value: undefined };
  }
}

/** How long a client waits for its settlement, in milliseconds. */
const settleWaitMs = 1_000;

/** Resolves with `work`, at the latest after {@link settleWaitMs}. Its failure has been reported. */
function orLater(work: Promise<void>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, settleWaitMs);
    const onEnd = (): void => {
      clearTimeout(timer);
      resolve();
    };
    work.then(onEnd, onEnd);
  });
}

/** As `create` would make it, without going through the schema for each chunk. */
function chunk(value: Uint8Array): Part {
  const message: ExchangeResponse = {
    $typeName: ExchangeResponseSchema.typeName,
    part: { case: "chunk", value },
  };
  return { done: false, value: message };
}
