/**
 * The life of one text generation, phase by phase: read → hold → ask → pass on, and settle last, which
 * always runs. It knows dialects by their interface only, and nothing of REST.
 */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import type { Chunk } from "./door.ts";
import type { Run } from "./run.ts";
import type { RunningCalls } from "./running-calls.ts";

/** How a run's replies become messages of an RPC. */
export interface Parts<Out extends Chunk, Message> {
  /** The message that comes first; `undefined`: none. */
  head(run: Run<Out>): Message | undefined;
  /** The messages for what goes to the caller at once; at least one. */
  of(out: Out): readonly [Message, ...Message[]];
}

/** What a {@link RunParts} needs. */
export interface RunPartsOptions<Out extends Chunk, Message> {
  readonly run: Run<Out>;
  readonly calls: RunningCalls;
  readonly parts: Parts<Out, Message>;
}

type Result<Message> = IteratorResult<Message, undefined>;

/**
 * The parts of one reply: runs the call while they are read. A failure before the head is thrown; one
 * after it ends the body as its door does. By hand, not as a generator: that would cost three promises for
 * each part instead of one, a tenth of what passing a chunk costs.
 */
export class RunParts<Out extends Chunk, Message>
  implements AsyncIterableIterator<Message, undefined>
{
  readonly #run: Run<Out>;
  readonly #calls: RunningCalls;
  readonly #parts: Parts<Out, Message>;
  /** Messages that came together with one that has been read. */
  #queue: readonly Message[] = [];
  #phase: "opening" | "passing" | "ending" = "opening";
  /** The read under way, or the last one. */
  #read: Promise<unknown> = Promise.resolve();
  #isCounted = false;
  #ended: Promise<void> | undefined;

  constructor({ run, calls, parts }: RunPartsOptions<Out, Message>) {
    this.#run = run;
    this.#calls = calls;
    this.#parts = parts;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<Result<Message>> {
    const result = this.#next();
    this.#read = result;
    return result;
  }

  /** Ends the call after the read that is under way. One that was never read has not begun. */
  async return(): Promise<Result<Message>> {
    if (this.#phase === "opening") this.#ended = Promise.resolve();
    this.#queue = [];
    await this.#read.catch(() => {});
    return this.#end();
  }

  #next(): Promise<Result<Message>> {
    const [queued] = this.#queue;
    if (queued !== undefined) {
      this.#queue = this.#queue.slice(1);
      return Promise.resolve({ done: false, value: queued });
    }
    if (this.#phase === "passing") return this.#pass();
    return this.#phase === "opening" ? this.#open() : this.#end();
  }

  async #open(): Promise<Result<Message>> {
    const run = this.#run;
    this.#phase = "ending";
    try {
      this.#calls.enter();
      this.#isCounted = true;
      await run.read();
      await run.hold();
      await run.ask();
      const value = this.#parts.head(run);
      this.#phase = "passing";
      if (value !== undefined) return { done: false, value };
    } catch (error) {
      const told = run.fail(error);
      await this.#end();
      throw told;
    }
    return this.#pass();
  }

  async #pass(): Promise<Result<Message>> {
    const run = this.#run;
    // There is nobody to pass anything on to: what is still to come is read before the call is settled.
    if (run.isLeft) return this.#end();
    try {
      while (await run.ready()) {
        const out = run.take();
        if (out.length === 0) continue;
        run.call.passed();
        const kept = run.keep(out);
        if (kept !== undefined) await kept;
        return this.#emit(out);
      }
      return await this.#rest();
    } catch (error) {
      // The vendor broke off because it was told to.
      return run.isStopped ? this.#rest() : this.#fail(error);
    }
  }

  async #rest(): Promise<Result<Message>> {
    const run = this.#run;
    const rest = run.rest();
    if (rest === undefined) {
      run.call.end(CallEnding.COMPLETED);
      return this.#end();
    }
    await run.keep(rest);
    return this.#emit(rest);
  }

  async #fail(error: unknown): Promise<Result<Message>> {
    const run = this.#run;
    const told = run.fail(error);
    this.#phase = "ending";
    if (run.call.ending !== CallEnding.COMPLETED) {
      const event = run.errorEvent(told);
      if (event !== undefined && event.length > 0) return this.#emit(event);
      await this.#end();
      throw told;
    }
    return this.#end();
  }

  #emit(out: Out): Result<Message> {
    const [value, ...more] = this.#parts.of(out);
    if (more.length > 0) this.#queue = more;
    return { done: false, value };
  }

  /** The client waits for its settlement a moment, so that it can find its call at once; not longer: the
   * reply is out, and the settlement is made whether anybody waits for it or not. */
  async #end(): Promise<Result<Message>> {
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
