/**
 * Monitors a stream against its hold, regardless of the output limit of its request (R-MON-5,
 * R-MON-12): the hold grows ahead of the generated text, or the stream ends. Checkpoints report to
 * the ledger what the call would cost if it ended now.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type Usage, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import type { ExtendVerdict, Ledger } from "../../billing/ledger/ledger.ts";
import {
  bytesPerToken,
  checkpointFirstMs,
  checkpointMs,
  extendWaitMs,
  streamCheckMs,
  streamOutageMs,
} from "../../core/limits.ts";
import { databaseUnavailable } from "../../core/database-lost.ts";
import type { GatewayError } from "../../core/errors.ts";
import { type Placed, ShortLivedSet } from "../../core/short-lived.ts";
import type { Call } from "./call.ts";
import { outOfBalance } from "./failures.ts";
import { HoldGrowth, type HoldPlan } from "./hold-plan.ts";

/** The reply that is monitored. */
interface MonitoredReply {
  readonly textBytes: number;
  readonly isOver: boolean;
  readonly unreadEventBytes: number;
  allowEvent(): void;
  stop(usage: Usage | undefined): void;
  fail(error: GatewayError): void;
}

/** Options of {@link HoldMonitor}. */
interface HoldMonitorOptions {
  readonly call: Call;
  readonly reply: MonitoredReply;
  readonly plan: HoldPlan;
  readonly ledger: Pick<Ledger, "extend">;
  /** Updates usage and cost of the call to what it consumed so far. */
  readonly charge: () => void;
  /** Computes the cost of a usage. */
  readonly costOf: (usage: Usage) => bigint;
  /** When the stream began, on the clock of `performance.now()`. Default: now. */
  readonly nowMs?: number;
}

export class HoldMonitor implements Placed {
  place = -1;
  readonly #options: HoldMonitorOptions;
  readonly #growth: HoldGrowth;
  /** The number of text bytes at which the next decision is due. */
  #checkAtBytes = Number.POSITIVE_INFINITY;
  /** The number of text bytes that the hold covers. */
  #coveredBytes = Number.POSITIVE_INFINITY;
  #dueMs: number;
  /** The time of the extend request that the ledger has not answered yet. */
  #requestedMs: number | undefined;
  #nowMs: number;
  #isEnded = false;
  #isUsedUp = false;
  /** Another process ended the hold because it considered this process dead. */
  #isClosed = false;
  /** The wait of an event for the ledger's next answer; undefined if none waits. */
  #answered: PromiseWithResolvers<void> | undefined;
  /**
   * The reader's wait for the answer to the last request; undefined if it has not waited for that.
   */
  #wait: { readonly over: Promise<void>; end(): void; isOver: boolean } | undefined;

  constructor(options: HoldMonitorOptions) {
    this.#options = options;
    this.#growth = new HoldGrowth(options.plan);
    this.#nowMs = options.nowMs ?? performance.now();
    this.#dueMs = this.#nowMs + checkpointFirstMs;
    // Text may have been read already, until it was clear that this vendor answers.
    const textNanos = this.#growth.textNanos(options.reply.textBytes);
    this.#checkAgain(options.plan.inputNanos + textNanos);
  }

  /** Whether the reply was stopped because its hold is used up: the call is charged already. */
  get isUsedUp(): boolean {
    return this.#isUsedUp;
  }

  /**
   * Call it after each read. It costs one comparison while no decision is due.
   *
   * @returns `undefined` to read on at once. A promise if the hold is used up: read on when it
   * resolves, which is when the ledger has answered, or after {@link extendWaitMs}
   */
  onRead(): Promise<void> | undefined {
    if (this.#options.reply.textBytes < this.#checkAtBytes) return undefined;
    this.#onText();
    return this.#requestedMs === undefined ? undefined : this.#waitIfUsedUp();
  }

  /**
   * The most text to read at once, in bytes: what the hold still covers. A vendor may send a long
   * reply in one piece.
   */
  get bytesAhead(): number {
    return Math.max(this.#coveredBytes - this.#options.reply.textBytes, 0);
  }

  /**
   * Decides about an event that is not read yet. Either the hold grows to cover the text of the
   * event, which is then read, or the reply ends without the event. Resolves when the ledger has
   * answered. A short event waits for {@link extendWaitMs} at most, as {@link onRead} does, so that
   * streams continue in an outage.
   */
  async coverEvent(): Promise<void> {
    const { reply } = this.#options;
    // An extend request that was sent earlier does not include this event.
    for (let isAsked = false; !this.#isEnded; ) {
      const costNanos = this.#cost() + this.#growth.textNanos(reply.unreadEventBytes);
      if (!this.#growth.isUsedUp(costNanos)) return reply.allowEvent();
      if (this.#requestedMs === undefined) {
        if (isAsked) return this.#stop();
        isAsked = true;
        this.#extend(this.#growth.requestExtension(costNanos));
      }
      if (reply.unreadEventBytes > longEventBytes) {
        this.#answered ??= Promise.withResolvers<void>();
        await this.#answered.promise;
      } else {
        this.#wait ??= newWait();
        if (this.#wait.isOver) return reply.allowEvent();
        await this.#wait.over;
      }
    }
    reply.allowEvent();
  }

  /**
   * Sends a due checkpoint, and ends a stream whose ledger is silent. @param nowMs on the clock of
   * `performance.now()`
   */
  check(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#growth.canRunOut) this.#onText();
    if (this.#isEnded) return;
    if (this.#requestedMs === undefined) {
      if (nowMs >= this.#dueMs) this.#checkpoint();
    } else if (nowMs - this.#requestedMs >= streamOutageMs) this.#giveUp();
  }

  /** Ends the monitoring. Call it when the reply has ended. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  #waitIfUsedUp(): Promise<void> | undefined {
    if (this.#isEnded || !this.#growth.isUsedUp(this.#cost())) return undefined;
    this.#wait ??= newWait();
    return this.#wait.isOver ? undefined : this.#wait.over;
  }

  #wake(): void {
    this.#wait?.end();
    this.#wait = undefined;
    this.#answered?.resolve();
    this.#answered = undefined;
  }

  /** Decides whether the hold grows or the reply stops. */
  #onText(): void {
    if (this.#isEnded) return;
    const costNanos = this.#cost();
    const decision = this.#requestedMs === undefined ? this.#growth.step(costNanos) : "go";
    if (decision === "stop") return this.#stop();
    if (decision === "extend") this.#extend(this.#growth.requestExtension(costNanos));
    this.#checkAgain(costNanos);
  }

  /** Sends the current cost to the ledger. */
  #checkpoint(): void {
    this.#cost();
    this.#extend(this.#growth.heldNanos);
  }

  /** The cost so far; before any content, the amount held for the input. */
  #cost(): bigint {
    const { call, charge } = this.#options;
    charge();
    return call.isCharged ? call.costNanos : this.#options.plan.inputNanos;
  }

  #checkAgain(costNanos: bigint): void {
    const { reply } = this.#options;
    const { textBytes } = reply;
    this.#checkAtBytes = textBytes + this.#growth.tokensAhead(costNanos) * bytesPerToken;
    this.#coveredBytes = textBytes + this.#growth.tokensCovered(costNanos) * bytesPerToken;
  }

  /** Asks the ledger to hold `amountNanos` in all; the request carries a checkpoint. */
  #extend(amountNanos: bigint): void {
    const { call, ledger } = this.#options;
    const { id, accountId } = call.start;
    this.#requestedMs = this.#nowMs;
    this.#dueMs = this.#nowMs + checkpointMs;
    // The record that recovery writes if this process dies.
    const record = { ...callRecord(call), ending: CallEnding.GATEWAY_LOST };
    const checkpointNanos = call.costNanos;
    ledger.extend({ id, accountId, amountNanos, checkpointNanos, record }).then(
      (verdict) => this.#onVerdict(amountNanos, verdict),
      // The ledger is closed: the process is ending.
      () => {},
    );
  }

  #onVerdict(requestedNanos: bigint, { heldNanos, closed }: ExtendVerdict): void {
    this.#requestedMs = undefined;
    this.#isClosed = closed === true;
    if (this.#isEnded) return this.#wake();
    const costNanos = this.#cost();
    this.#growth.extended(requestedNanos, heldNanos, costNanos);
    this.#options.call.heldNanos = this.#growth.heldNanos;
    this.#onText();
    this.#wake();
  }

  /**
   * Stops a reply whose hold is used up. Output beyond the hold is not charged: no balance covers
   * it.
   */
  #stop(): void {
    const { call, reply, costOf } = this.#options;
    if (reply.isOver && reply.unreadEventBytes === 0) return;
    // The balance is unknown, so the cause is not the balance.
    if (this.#isClosed) return this.#fail();
    this.#isEnded = this.#isUsedUp = true;
    clampCall(call, this.#growth.heldNanos, costOf);
    call.end(CallEnding.OUT_OF_BALANCE, outOfBalance(this.#growth.heldNanos));
    reply.stop(call.usage);
  }

  /** The ledger has been silent for too long: fails a stream whose hold is used up. */
  #giveUp(): void {
    if (this.#answered === undefined && !this.#growth.isUsedUp(this.#cost())) return;
    this.#fail();
  }

  #fail(): void {
    const { call, reply } = this.#options;
    this.#isEnded = true;
    const error = databaseUnavailable();
    call.end(CallEnding.GATEWAY_FAILED, error);
    reply.fail(error);
    this.#wake();
  }
}

/** Events with at least this much text wait for the ledger's answer: about 1,000 tokens. */
const longEventBytes = 4_096;

/** Begins a wait of at most {@link extendWaitMs}. */
function newWait() {
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const wait = {
    over,
    isOver: false,
    end: () => {
      wait.isOver = true;
      clearTimeout(timer);
      resolve();
    },
  };
  const timer = setTimeout(wait.end, extendWaitMs);
  return wait;
}

/**
 * The monitors of all streams of a process. One timer serves them, and runs only while there are
 * any.
 */
export class MonitoredStreams {
  readonly #monitors = new ShortLivedSet<HoldMonitor>();
  #timer: NodeJS.Timeout | undefined;

  /** Adds the monitor of a new stream. */
  add(monitor: HoldMonitor): void {
    this.#monitors.add(monitor);
    this.#timer ??= setInterval(() => this.check(performance.now()), streamCheckMs).unref();
  }

  /** Removes the monitor of an ended stream; harmless if it was never added. */
  delete(monitor: HoldMonitor): void {
    if (!this.#monitors.delete(monitor) || this.#monitors.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Checks all streams. @param nowMs on the clock of `performance.now()` */
  check(nowMs: number): void {
    for (const monitor of this.#monitors.list()) monitor.check(nowMs);
  }
}

/**
 * Reduces the output tokens of a usage until it costs at most `nanos`. Input tokens are never
 * reduced.
 *
 * @param cost computes the cost of a usage; must not decrease with more tokens
 */
function clampToBalance(usage: Usage, nanos: bigint, cost: (usage: Usage) => bigint): Usage {
  const withOutput = (outputTokens: number): Usage => ({
    ...usage,
    outputTokens,
    reasoningTokens: Math.min(usage.reasoningTokens, outputTokens),
  });
  if (cost(usage) <= nanos) return usage;
  let paid = 0;
  let tooMany = usage.outputTokens;
  while (tooMany - paid > 1) {
    const middle = Math.floor((paid + tooMany) / 2);
    if (cost(withOutput(middle)) <= nanos) paid = middle;
    else tooMany = middle;
  }
  return withOutput(paid);
}

/**
 * Reduces the charge of a call to at most `nanos`. Figures that were not counted become estimates.
 */
export function clampCall(call: Call, nanos: bigint, costOf: (usage: Usage) => bigint): void {
  const { usage } = call;
  if (usage === undefined) return;
  call.usage = clampToBalance(usage, nanos, costOf);
  call.costNanos = costOf(call.usage);
  if (call.usage !== usage) call.usageSource = UsageSource.ESTIMATED;
}
