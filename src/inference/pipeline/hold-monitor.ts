/**
 * Monitors a stream against its hold, whatever output limit its request named (R-MON-5, R-MON-12): the hold grows ahead
 * of what is generated, or the stream ends. From time to time it tells the ledger what the call would cost if it ended now.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import type { ExtendVerdict, Ledger } from "../../billing/ledger/ledger.ts";
import {
  bytesPerToken,
  checkpointFirstMs,
  checkpointMs,
  streamCheckMs,
  streamOutageMs,
} from "../../config/limits.ts";
import { databaseUnavailable } from "../../core/database-lost.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { Call } from "./call.ts";
import { outOfBalance } from "./failures.ts";
import { HoldGrowth, type HoldPlan } from "./hold-plan.ts";

/** The reply that is monitored. */
interface MonitoredReply {
  readonly textBytes: number;
  readonly isOver: boolean;
  stop(usage: Usage | undefined): void;
  fail(error: GatewayError): void;
}

/** What a {@link HoldMonitor} needs. */
interface HoldMonitorOptions {
  readonly call: Call;
  readonly reply: MonitoredReply;
  readonly plan: HoldPlan;
  readonly ledger: Pick<Ledger, "extend">;
  /** Writes on the call what it consumed so far, and what that costs. */
  readonly charge: () => void;
  /** What a usage costs. */
  readonly costOf: (usage: Usage) => bigint;
  /** When the stream began, on the clock of `performance.now()`. Default: now. */
  readonly nowMs?: number;
}

export class HoldMonitor {
  readonly #options: HoldMonitorOptions;
  readonly #growth: HoldGrowth;
  /** At how many bytes of text there is something to decide. */
  #checkAtBytes = Number.POSITIVE_INFINITY;
  #dueMs: number;
  /** When the ledger was asked that has not answered yet. */
  #requestedMs: number | undefined;
  #nowMs: number;
  #isEnded = false;
  #isUsedUp = false;
  /** The hold was ended by others: this process had been taken for dead. */
  #isClosed = false;

  constructor(options: HoldMonitorOptions) {
    this.#options = options;
    this.#growth = new HoldGrowth(options.plan);
    this.#nowMs = options.nowMs ?? performance.now();
    this.#dueMs = this.#nowMs + checkpointFirstMs;
    this.#checkAgain(options.plan.inputNanos);
  }

  /** Whether the reply was stopped because its hold is used up: the call is charged already. */
  get isUsedUp(): boolean {
    return this.#isUsedUp;
  }

  /** More of the reply has come. A comparison for each read is all that it costs while there is nothing to decide. */
  onRead(): void {
    if (this.#options.reply.textBytes >= this.#checkAtBytes) this.#onText();
  }

  /** Does what is due. @param nowMs on the clock of `performance.now()` */
  check(nowMs: number): void {
    this.#nowMs = nowMs;
    if (this.#growth.canRunOut) this.#onText();
    if (this.#isEnded) return;
    if (this.#requestedMs === undefined) {
      if (nowMs >= this.#dueMs) this.#checkpoint();
    } else if (nowMs - this.#requestedMs >= streamOutageMs) this.#giveUp();
  }

  /** The reply has ended: nothing is decided any more. */
  end(): void {
    this.#isEnded = true;
  }

  /** So much text has come that there is something to decide. */
  #onText(): void {
    if (this.#isEnded) return;
    const costNanos = this.#cost();
    const step = this.#requestedMs === undefined ? this.#growth.step(costNanos) : "go";
    if (step === "stop") return this.#stop();
    if (step === "extend") this.#extend(this.#growth.requestExtension(costNanos));
    this.#checkAgain(costNanos);
  }

  /** Tells how far the call is. */
  #checkpoint(): void {
    this.#cost();
    this.#extend(this.#growth.heldNanos);
  }

  /** What the call costs so far. Before anything has come, what is held for the input. */
  #cost(): bigint {
    const { call, charge } = this.#options;
    charge();
    return call.isCharged ? call.costNanos : this.#options.plan.inputNanos;
  }

  #checkAgain(costNanos: bigint): void {
    const { reply } = this.#options;
    this.#checkAtBytes = reply.textBytes + this.#growth.tokensAhead(costNanos) * bytesPerToken;
  }

  /** @param amountNanos what is to be held in all */
  #extend(amountNanos: bigint): void {
    const { call, ledger } = this.#options;
    const { id, accountId } = call.start;
    this.#requestedMs = this.#nowMs;
    this.#dueMs = this.#nowMs + checkpointMs;
    // Whoever finds it finds a call that was lost on its way.
    const record = { ...callRecord(call), ending: CallEnding.GATEWAY_LOST };
    const checkpointNanos = call.costNanos;
    ledger.extend({ id, accountId, amountNanos, checkpointNanos, record }).then(
      (verdict) => this.#onVerdict(amountNanos, verdict),
      // The ledger is closed: the process ends, and the settlement with it.
      () => {},
    );
  }

  #onVerdict(requestedNanos: bigint, { heldNanos, closed }: ExtendVerdict): void {
    this.#requestedMs = undefined;
    this.#isClosed = closed === true;
    if (this.#isEnded) return;
    const costNanos = this.#cost();
    this.#growth.extended(requestedNanos, heldNanos, costNanos);
    this.#options.call.heldNanos = this.#growth.heldNanos;
    this.#onText();
  }

  /** The hold is used up. What came beyond it since the last look is not charged: nobody could have paid. */
  #stop(): void {
    const { call, reply, costOf } = this.#options;
    if (reply.isOver) return;
    // Not for want of money: whether there is more, nobody could be asked.
    if (this.#isClosed) return this.#fail();
    this.#isEnded = this.#isUsedUp = true;
    if (call.usage !== undefined) {
      call.usage = clampToBalance(call.usage, this.#growth.heldNanos, costOf);
      call.costNanos = costOf(call.usage);
    }
    call.end(CallEnding.OUT_OF_BALANCE, outOfBalance(this.#growth.heldNanos));
    reply.stop(call.usage);
  }

  /** The database is away for too long to go on without knowing who pays. */
  #giveUp(): void {
    if (!this.#growth.isUsedUp(this.#cost())) return;
    this.#fail();
  }

  #fail(): void {
    const { call, reply } = this.#options;
    this.#isEnded = true;
    const error = databaseUnavailable();
    call.end(CallEnding.GATEWAY_FAILED, error);
    reply.fail(error);
  }
}

/** The monitors of a process's streams: one timer for all of them, which runs only while there are any. */
export class MonitoredStreams {
  readonly #monitors = new Set<HoldMonitor>();
  #timer: NodeJS.Timeout | undefined;

  /** A stream begins. */
  add(monitor: HoldMonitor): void {
    this.#monitors.add(monitor);
    this.#timer ??= setInterval(() => this.check(performance.now()), streamCheckMs).unref();
  }

  /** A stream has ended, or never began. */
  delete(monitor: HoldMonitor): void {
    if (!this.#monitors.delete(monitor) || this.#monitors.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Has all of them do what is due. @param nowMs on the clock of `performance.now()` */
  check(nowMs: number): void {
    for (const monitor of this.#monitors) monitor.check(nowMs);
  }
}

/**
 * The usage as far as `nanos` pay for it: with fewer tokens of output where it costs more. What was read is
 * never less.
 *
 * @param cost what a usage costs: more tokens never cost less
 */
export function clampToBalance(usage: Usage, nanos: bigint, cost: (usage: Usage) => bigint): Usage {
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
