/**
 * External tasks: the native room submits them while their client waits for the vendor's reply. The
 * intent and the hold are durable before the vendor is called, as with every task. From the reply
 * on, workers run them. If the process dies meanwhile, workers recover the outcome.
 */
import type { Pool, PoolClient } from "pg";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { applyIn } from "../../billing/ledger/apply-in.ts";
import type { ModelConfig, RouteConfig } from "../../config/config.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Clock } from "../../core/clock.ts";
import type { TaskUnits } from "../../provider/task.ts";
import { chargeOf, isCancelBilled, taskHold } from "./charge.ts";
import { holdRefused } from "../../billing/hold-refused.ts";
import { recordNotification } from "./vendor-notifications.ts";
import { inTransaction, type TransitionOptions, applyTransition } from "../transition.ts";
import type { Submitter, TaskPricing } from "../submit/submit.ts";
import { type WholeTask, taskColumns } from "../task-row.ts";

/** An external task that is about to be submitted. */
export interface ExternalTask {
  readonly model: ModelConfig;
  readonly route: RouteConfig;
  /** The requested units: charged if the vendor does not report the generated ones. */
  readonly units: TaskUnits;
  /** The units of its hold. The requested units by default. */
  readonly maxUnits?: TaskUnits;
  /** The public path. */
  readonly path: string;
  /** SHA-256 of the request. */
  readonly fingerprint: Buffer;
  readonly callbackUrl: string | null;
  /** Time for which its vendor stores it: a task that has not ended by then fails. */
  readonly runMs: number;
  /** Maximum wait of its client for the vendor: the length of its lease. */
  readonly waitMs: number;
  /** Maximum number of concurrent tasks at its vendor; undefined for no limit. */
  readonly vendorMax: number | undefined;
}

/** Options of {@link createExternalTasks}. */
export interface ExternalTasksOptions extends TransitionOptions {
  readonly pool: Pool;
  readonly clock: Pick<Clock, "newId">;
  readonly pricing: TaskPricing;
  /** Called when a task is due. */
  readonly onNews: () => void;
}

/** The steps of external tasks until workers take over. */
export interface ExternalTasks {
  /**
   * Makes the intent to submit durable, and places the hold.
   *
   * @param beside writes more rows in the same transaction
   * @throws GatewayError INSUFFICIENT_BALANCE, UPSTREAM_OVERLOADED, SERVICE_UNAVAILABLE
   */
  begin(task: ExternalTask, submitter: Submitter, beside: WriteAlongside): Promise<WholeTask>;
  /**
   * Records that the vendor has the task.
   *
   * @param beside writes more rows, in a transaction before workers may see the change
   */
  accept(task: WholeTask, vendorTaskId: string, beside: WriteAlongside): Promise<void>;
  /** The vendor refused the task: nothing runs, nothing is charged, and no webhook is sent. */
  refuse(task: WholeTask, error: GatewayError): Promise<void>;
  /** The vendor did not answer: it may have the task. */
  lose(task: WholeTask): Promise<void>;
}

/** Writes rows that belong to a task in the transaction of the task. */
export type WriteAlongside = (transaction: PoolClient, task: WholeTask) => Promise<void>;

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

/** Creates the external tasks. */
export function createExternalTasks(options: ExternalTasksOptions): ExternalTasks {
  const { pool, onNews } = options;
  return {
    begin: (task, submitter, beside) =>
      mapDatabaseLoss(
        inTransaction(pool, (open) => begin(open, options, { task, submitter, beside })),
      ),

    async accept(task, vendorTaskId, beside) {
      await inTransaction(pool, async (transaction) => {
        await beside(transaction, task);
        // If this process dies now, recovery finds that the vendor has the task.
        await recordNotification(transaction, task.attempt_token ?? "", {
          vendorTaskId,
          isConfirmed: true,
        });
      });
      const set = { vendor_task_id: vendorTaskId };
      await applyTransition(options, task, { event: "accept", set, releaseMs: 0 });
      onNews();
    },

    async refuse(task, error) {
      const { word } = error.meaning;
      const charge = chargeOf(task, {
        errorCode: word,
        ending: CallEnding.UPSTREAM_REFUSED,
        status: error.status,
      });
      const set = { error_code: word, error: error.message };
      await applyTransition({ ...options, notify: async () => {} }, task, {
        event: "fail",
        set,
        charge,
      });
    },

    async lose(task) {
      await applyTransition(options, task, { event: "lose", releaseMs: 0 });
      onNews();
    },
  };
}

/** Inserts the task and places its hold: the hold is last, because it locks the account. */
async function begin(
  transaction: PoolClient,
  { clock, pricing }: ExternalTasksOptions,
  asked: {
    readonly task: ExternalTask;
    readonly submitter: Submitter;
    readonly beside: WriteAlongside;
  },
): Promise<WholeTask> {
  const { task, submitter, beside } = asked;
  const { caller } = submitter;
  const id = clock.newId();
  const price = pricing.priceNow(task.model, caller.priceList);
  const { discountBp = 0 } = caller;
  const amountNanos = pricing.hold(price, task.maxUnits ?? task.units, discountBp);
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
  const { keyLimitNanos: limitNanos } = caller;
  throw holdRefused({ verdict, neededNanos: amountNanos, limitNanos, subject: "task" });
}

function valuesOf(
  id: string,
  {
    task,
    submitter: { caller, requestId },
    money,
  }: {
    readonly task: ExternalTask;
    readonly submitter: Submitter;
    readonly money: readonly unknown[];
  },
): unknown[] {
  const { model, route, units, fingerprint, callbackUrl, path } = task;
  const asked = [model.key, model.type, JSON.stringify(units), fingerprint];
  return [
    ...[id, caller.accountId, caller.keyId, ...asked, callbackUrl, requestId, ...money],
    ...[route.vendor, route.model, path, task.runMs, task.waitMs, task.vendorMax ?? null],
    isCancelBilled(model, {}),
  ];
}

function overloaded(): GatewayError {
  return new GatewayError(
    ErrorCode.UPSTREAM_OVERLOADED,
    "The vendor's maximum number of concurrent jobs is reached; retry after the time in the retry-after header",
  );
}
