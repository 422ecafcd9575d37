/** Computes the cost of a task, and builds its call record. Pure. */
import type { JsonObject } from "@bufbuild/protobuf";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CancelBilling } from "../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import type { CallRow } from "../../billing/calls/call-row.ts";
import type { LedgerBatch } from "../../billing/ledger/apply-in.ts";
import { callCost } from "../../billing/prices/cost.ts";
import type { ModelConfig, PriceConfig } from "../../config/config.ts";
import { taskHoldTtlMs } from "../../core/limits.ts";
import type { KeyCaller } from "../../core/caller.ts";
import { backgroundOf } from "../../responses/background/request.ts";
import type { TaskOutcome, ReportedCost, TaskUnits } from "../../provider/task.ts";
import type { StoredUsageJson, TaskRow, WholeTask } from "../task-row.ts";

/** The path of tasks in the call log. */
const taskPath = "/api/ai/tasks";

/** The charge of a task that ends. */
export interface TaskCharge {
  /** In nano-USD. */
  readonly costNanos: bigint;
  /** The charged usage; absent if the task has none. */
  readonly usage?: StoredUsageJson | undefined;
  /** Absent if the database refuses every record of it. */
  readonly record?: CallRow | undefined;
  /**
   * Whether `record` is a `bareRecord`, because the database refused the whole one. Default false.
   */
  readonly isBare?: boolean;
  /** Figures of the vendor that are charged only in part (R-MON-15); absent if there are none. */
  readonly implausible?: ImplausibleUsage | undefined;
}

/** Figures of a vendor that would charge more than the hold, or that cannot be true. */
export interface ImplausibleUsage {
  readonly usage: StoredUsageJson;
  /** The uncharged part of them, in nano-USD. */
  readonly lossNanos: bigint;
}

/** The end of a task, as far as it determines the charge. */
export interface Ended {
  /** The vendor's result; absent if there is none. */
  readonly outcome?: TaskOutcome;
  /** The requested units: charged if the vendor does not report the generated ones. */
  readonly asked?: TaskUnits;
  /** The price of its hold; required if the task is charged. */
  readonly price?: PriceConfig | undefined;
  /** The vendor's charge to the operator, in nano-USD; undefined if it is unknown or zero. */
  readonly vendorCostNanos?: bigint | undefined;
  /** The documented error code; empty if it was completed or cancelled. */
  readonly errorCode: string;
  readonly ending: CallEnding;
  readonly status: number;
}

/** The usage of a task, as prices count it. */
export function usageOf({
  outcome,
  asked = {},
}: Pick<Ended, "outcome" | "asked">): StoredUsageJson {
  const { images, seconds, characters } = { ...asked, ...outcome?.units };
  const { isEstimated: _, ...tokens } = outcome?.usage ?? {};
  return {
    inputTokens: 0,
    cachedInputTokens: 0,
    cacheWriteTokens: 0,
    outputTokens: 0,
    reasoningTokens: 0,
    ...tokens,
    ...(images !== undefined && { images }),
    ...(seconds !== undefined && { seconds }),
    ...(characters !== undefined && { characters }),
  };
}

/**
 * Whether a cancelled task is charged with the vendor's charge for it. A background response is a
 * call: its input is charged once it was sent, also after a disconnect (R-MON-11).
 */
export function isCancelBilled({ cancelBilling }: ModelConfig, params: JsonObject): boolean {
  return cancelBilling === CancelBilling.UPSTREAM || backgroundOf(params) !== undefined;
}

/**
 * The outcome of a stopped task. Units that its vendor does not report count as 0, whatever was
 * requested.
 */
export function stoppedOutcome({ usage, units }: ReportedCost): TaskOutcome {
  return { files: [], ...(usage && { usage }), units: { images: 0, seconds: 0, ...units } };
}

/**
 * The charge of a task's end. Only completed tasks are charged, and cancelled ones if their model
 * is configured so (R-TSK-6). Never more than the hold (R-MON-15): the customer does not pay for
 * output that was not requested.
 */
export function chargeOf(task: WholeTask, ended: Ended): TaskCharge {
  const { outcome, price, vendorCostNanos } = ended;
  const isCharged =
    outcome !== undefined && outcome.isFree !== true && isCharging(task, ended.ending);
  let usage = outcome && usageOf(ended);
  const hold = BigInt(task.hold);
  let costNanos = 0n;
  let implausible: ImplausibleUsage | undefined;
  if (isCharged && usage !== undefined) {
    if (price === undefined) throw new Error(`no price ${task.price_version} of task ${task.id}`);
    const costOf = (each: StoredUsageJson): bigint => callCost(price, each, task.discount_bp);
    costNanos = atMost(costOf(usage), hold);
    usage = chargedPart(usage, costOf, hold);
    const { implausibleUsage } = outcome;
    const own = { ...outcome, ...(implausibleUsage && { usage: implausibleUsage }) };
    const reported = usageOf({ ...ended, outcome: own });
    const lossNanos = costOf(reported) - costNanos;
    if (lossNanos > 0n) implausible = { usage: reported, lossNanos };
  }
  const record = recordOf(task, ended, { usage, costNanos, isCharged, vendorCostNanos });
  return { costNanos, usage, record, implausible };
}

/**
 * The usage with the images and seconds that its hold covers: records and tasks show the charged
 * quantities.
 */
function chargedPart(
  usage: StoredUsageJson,
  costOf: (usage: StoredUsageJson) => bigint,
  hold: bigint,
): StoredUsageJson {
  const { images, seconds, ...others } = usage;
  const cost = costOf(usage);
  const otherCost = costOf(others);
  if (cost <= hold || cost === otherCost) return usage;
  const share = Number(hold > otherCost ? hold - otherCost : 0n) / Number(cost - otherCost);
  return {
    ...others,
    ...(images !== undefined && { images: Math.round(images * share) }),
    ...(seconds !== undefined && { seconds: Math.round(seconds * share * 1_000) / 1_000 }),
  };
}

function atMost(costNanos: bigint, hold: bigint): bigint {
  return costNanos > hold ? hold : costNanos;
}

function isCharging({ is_cancel_billed: isBilled }: WholeTask, ending: CallEnding): boolean {
  return ending === CallEnding.COMPLETED || (isBilled && ending === CallEnding.CANCELLED);
}

interface Charged {
  readonly usage: StoredUsageJson | undefined;
  readonly costNanos: bigint;
  readonly isCharged: boolean;
  readonly vendorCostNanos: bigint | undefined;
}

function recordOf(task: WholeTask, ended: Ended, charged: Charged): CallRow {
  const background = backgroundOf(task.params);
  const { usage } = charged;
  return callRecord({
    ...charged,
    id: task.id,
    requestId: task.request_id,
    accountId: task.account_id,
    keyId: task.key_id,
    model: task.model,
    vendor: task.vendor,
    path: task.path ?? task.call_path ?? background?.path ?? taskPath,
    stream: background?.isStreamed ?? false,
    status: ended.status,
    errorCode: ended.errorCode,
    ending: ended.ending,
    usageSource: sourceOf(ended.outcome),
    units: usage,
    heldNanos: BigInt(task.hold),
    priceVersion: task.price_version,
    startedAt: task.create_time,
    // Known when it ends: the transition writes it.
    durationMs: 0,
    firstByteMs: 0,
    upstreamRequestId: task.vendor_task_id ?? "",
    dropped: ended.outcome?.dropped ?? [],
    discountBp: task.discount_bp,
    attempts: undefined,
  });
}

/** The largest `integer` of PostgreSQL, the type of stored durations: 24 days in milliseconds. */
const durationMsMax = 2 ** 31 - 1;

/**
 * Duration of a task from its submit to its end in milliseconds; 0 before its end. Both times are
 * the database's: the clock of this process may be wrong.
 */
export function taskDurationMs({
  create_time: start,
  finish_time: end,
}: Pick<TaskRow, "create_time" | "finish_time">): number {
  if (end === null) return 0;
  return Math.min(durationMsMax, Math.max(0, end.getTime() - start.getTime()));
}

function sourceOf(outcome: TaskOutcome | undefined): UsageSource {
  if (outcome?.usage === undefined) return UsageSource.UNSPECIFIED;
  return outcome.usage.isEstimated ? UsageSource.ESTIMATED : UsageSource.UPSTREAM;
}

/**
 * The one hold of a task. It belongs to no process and is not renewed. @param id of the task, and
 * of its hold
 */
export function taskHold(
  { accountId, keyId, keyLimitNanos }: KeyCaller,
  id: string,
  amountNanos: bigint,
): LedgerBatch {
  const key = keyLimitNanos === undefined ? { keyId } : { keyId, keyLimitNanos };
  return { accountId, holds: [{ id, amountNanos, ...key }], ttlMs: taskHoldTtlMs };
}
