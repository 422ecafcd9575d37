/**
 * Tasks that are submitted by somebody else than a worker: their client waits for the vendor's own answer. The
 * intent and the money are durable before the vendor is asked, as with every task; from its answer on, workers look
 * after them, and where its process dies meanwhile, they find out what there is to find out.
 */
import type { Pool, PoolClient } from "pg";
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { applyIn } from "../billing/ledger/apply-in.ts";
import type { ModelConfig, RouteConfig } from "../config/config.ts";
import { answering } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { newId } from "../core/uuid.ts";
import type { TaskUnits } from "../vendor/task.ts";
import { chargeOf, isCancelBilled, taskHold } from "./charge.ts";
import { holdRefused } from "./failures.ts";
import { hintTask } from "./vendor-notifications.ts";
import { inTransaction, type MoveNeeds, moveTask } from "./transition.ts";
import type { Submitter, TaskPricing } from "./submit.ts";
import { type WholeTask, taskColumns } from "./task-row.ts";

/** A task that is about to be submitted. */
export interface OutsideTask {
  readonly model: ModelConfig;
  readonly route: RouteConfig;
  /** What was asked for: what it is charged by where nobody tells what was made. */
  readonly units: TaskUnits;
  /** The most that it can be charged for. Default: what was asked for. */
  readonly most?: TaskUnits;
  /** The public path. */
  readonly path: string;
  /** SHA-256 of what was asked for. */
  readonly fingerprint: Buffer;
  readonly callbackUrl: string | null;
  /** How long its vendor keeps it, in milliseconds: one that has not ended by then is given up. */
  readonly runMs: number;
  /** How long its client may wait for the vendor, in milliseconds: until then nobody else looks after it. */
  readonly waitMs: number;
  /** The most tasks that its vendor may have at once; `undefined`: no limit. */
  readonly vendorMax: number | undefined;
}

/** What {@link createOutsideTasks} needs. */
export interface OutsideOptions extends MoveNeeds {
  readonly pool: Pool;
  readonly pricing: TaskPricing;
  /** Called when there is something to look at. */
  readonly onNews: () => void;
}

/** The steps of such tasks. */
export interface OutsideTasks {
  /**
   * Writes the intent down, and holds its money.
   *
   * @param beside what else is written in the transaction
   * @throws GatewayError INSUFFICIENT_BALANCE, UPSTREAM_OVERLOADED, SERVICE_UNAVAILABLE
   */
  begin(task: OutsideTask, submitter: Submitter, beside: Beside): Promise<WholeTask>;
  /** The vendor has it. @param beside what else is written, before anybody else may know of it */
  accept(task: WholeTask, vendorTaskId: string, beside: Beside): Promise<void>;
  /** The vendor refused it: nothing runs, nothing is charged, nobody is told but the client. */
  refuse(task: WholeTask, error: GatewayError): Promise<void>;
  /** The vendor did not answer: it may have it. */
  lose(task: WholeTask): Promise<void>;
}

/** Something that is written with a task. */
export type Beside = (transaction: PoolClient, task: WholeTask) => Promise<void>;

const insertSql = `
  insert into task (id, account_id, key_id, model, type, params, fingerprint, callback_url, request_id, hold,
    price_version, discount_bp, vendor, vendor_model, path, deadline, lease_until, next_time, state, fence,
    attempt_token, attempt_time, start_time, is_cancel_billed)
  select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
    clock_timestamp() + $16 * interval '1 ms', clock_timestamp() + $17 * interval '1 ms',
    clock_timestamp() + $17 * interval '1 ms', 'submitting', 1, gen_random_uuid(), clock_timestamp(),
    clock_timestamp(), $19
  where $18::int is null or (select count(*) from task
    where vendor = $13 and state in ('submitting', 'submit_unknown', 'running')) < $18
  returning ${taskColumns}`;

/** Makes them. */
export function createOutsideTasks(options: OutsideOptions): OutsideTasks {
  const { pool, onNews } = options;
  return {
    begin: (task, submitter, beside) =>
      answering(inTransaction(pool, (open) => begin(open, options, { task, submitter, beside }))),

    async accept(task, vendorTaskId, beside) {
      await inTransaction(pool, async (transaction) => {
        await beside(transaction, task);
        // Where this process dies now, somebody else knows that the vendor has it.
        await hintTask(transaction, task.attempt_token ?? "", { vendorTaskId, isSure: true });
      });
      const set = { vendor_task_id: vendorTaskId };
      await moveTask(options, task, { event: "accept", set, releaseMs: 0 });
      onNews();
    },

    async refuse(task, error) {
      const { word } = error.meaning;
      const charge = chargeOf(task, {
        errorCode: word,
        ending: CallEnding.UPSTREAM_REFUSED,
        status: error.status,
        now: new Date(),
      });
      const set = { error_code: word, error: error.message };
      await moveTask({ ...options, tell: async () => {} }, task, { event: "fail", set, charge });
    },

    async lose(task) {
      await moveTask(options, task, { event: "lose", releaseMs: 0 });
      onNews();
    },
  };
}

/** The money comes last, for it locks the account. */
async function begin(
  transaction: PoolClient,
  { pricing }: OutsideOptions,
  asked: {
    readonly task: OutsideTask;
    readonly submitter: Submitter;
    readonly beside: Beside;
  },
): Promise<WholeTask> {
  const { task, submitter, beside } = asked;
  const { caller } = submitter;
  const id = newId();
  const price = pricing.priceAt(task.model, Date.now());
  const { discountBp = 0 } = caller;
  const amountNanos = pricing.holdUnits(price, task.most ?? task.units, discountBp);
  const money = [amountNanos.toString(), pricing.version(price), discountBp];
  const { rows } = await transaction.query<WholeTask>(
    insertSql,
    valuesOf(id, { task, submitter, money }),
  );
  const [row] = rows;
  if (row === undefined) throw overloaded();
  await beside(transaction, row);
  const { holds } = await applyIn(transaction, taskHold(caller, id, amountNanos));
  const [verdict] = holds;
  if (verdict?.admitted !== false) return row;
  throw holdRefused(verdict, amountNanos, caller.keyLimitNanos);
}

function valuesOf(
  id: string,
  {
    task,
    submitter: { caller, requestId },
    money,
  }: {
    readonly task: OutsideTask;
    readonly submitter: Submitter;
    readonly money: readonly unknown[];
  },
): unknown[] {
  const { model, route, units, fingerprint, callbackUrl, path } = task;
  const asked = [model.key, model.type, JSON.stringify(units), fingerprint];
  return [
    ...[id, caller.accountId, caller.keyId, ...asked, callbackUrl, requestId, ...money],
    ...[route.vendor, route.model, path, task.runMs, task.waitMs, task.vendorMax ?? null],
    isCancelBilled(model),
  ];
}

function overloaded(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The vendor has as many jobs as it may have at once; retry after the time in the retry-after header",
  );
}
