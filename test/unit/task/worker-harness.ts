/** A database with tasks, and workers on it. */
import { randomBytes } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { Pool } from "pg";
import { expect } from "vitest";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { applyIn } from "../../../src/billing/ledger/apply-in.ts";
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import { inTransaction } from "../../../src/task/transition.ts";
import type { TaskRow } from "../../../src/task/task-row.ts";
import { createTaskWorker, type TaskWorker } from "../../../src/task/work/worker.ts";
import { topUp } from "../billing/harness.ts";
import { createTestDatabase } from "../../support/database.ts";
import { imageNanos, type TestWorkerOptions, workerOptions } from "./worker-setup.ts";
import { newId } from "../../../src/core/uuid.ts";

/** See {@link openTasks}. */
export type Tasks = Awaited<ReturnType<typeof openTasks>>;

/** A task in a test. */
export interface TestTask {
  readonly accountId: string;
  readonly model?: string;
  readonly callbackUrl?: string;
  readonly deadlineMs?: number;
  readonly images?: number;
  /** Default: the pictures. */
  readonly params?: JsonObject;
  /** Default IMAGE. */
  readonly type?: ModelType;
  /** Whether it costs what its vendor takes if it is cancelled. Default: not. */
  readonly isCancelBilled?: boolean;
}

/** Opens a fresh database. Close it. */
export async function openTasks() {
  const database = await createTestDatabase();
  const pool = new Pool({ connectionString: database.url, max: 8 });
  pool.on("error", () => {});
  const open = new Set<TaskWorker>();
  return {
    url: database.url,
    pool,
    async account(nanos = 1_000_000n): Promise<string> {
      const accountId = newId();
      await topUp(pool, accountId, nanos);
      return accountId;
    },
    submit: (task: TestTask) => submit(pool, task),
    /** Runs a worker until the test's end. */
    work(options: TestWorkerOptions): TaskWorker {
      const worker = createTaskWorker(workerOptions(pool, options));
      open.add(worker);
      worker.start();
      return worker;
    },
    row: (id: string) => row(pool, id),
    /** Waits until tasks have ended. */
    async ended(ids: readonly string[]): Promise<Stored[]> {
      return until(async () => {
        const rows = await Promise.all(ids.map((id) => row(pool, id)));
        return rows.every(({ finish_time: time }) => time !== null) ? rows : undefined;
      });
    },
    states: async (id: string) => (await events(pool, id, "state")).map(({ state }) => state),
    events: (id: string, kind: string) => events(pool, id, kind),
    /** The bodies of its webhooks, in order. */
    async told(id: string): Promise<readonly Record<string, unknown>[]> {
      const sql =
        "select convert_from(body, 'utf8')::json as body from webhook_event where task_id = $1 order by sequence";
      const { rows } = await pool.query<{ body: Record<string, unknown> }>(sql, [id]);
      return rows.map(({ body }) => body);
    },
    async balance(accountId: string) {
      const sql = "select available, held from balance where account_id = $1";
      const { rows } = await pool.query<{ available: string; held: string }>(sql, [accountId]);
      return { available: BigInt(rows[0]?.available ?? 0), held: BigInt(rows[0]?.held ?? 0) };
    },
    async expectClean(): Promise<void> {
      expect(await auditLedger(pool)).toEqual([]);
    },
    async stopAll(): Promise<void> {
      await Promise.all([...open].map((worker) => worker.stop()));
      open.clear();
    },
    async close(): Promise<void> {
      await pool.end();
      await database.close();
    },
  };
}

/** A task as it is in the table. */
export type Stored = TaskRow & { readonly lease_until: Date | null; readonly next_time: Date };

async function submit(pool: Pool, task: TestTask): Promise<string> {
  const { accountId, model: key = "m", images = 1, callbackUrl, deadlineMs = 600_000 } = task;
  const { params = { images }, type = ModelType.IMAGE, isCancelBilled = false } = task;
  const id = newId();
  const hold = imageNanos * BigInt(images);
  await inTransaction(pool, async (client) => {
    await client.query(
      `insert into task (id, account_id, key_id, model, type, params, fingerprint, request_id, deadline,
        hold, price_version, discount_bp, callback_url, is_cancel_billed)
       values ($1, $2, $3, $4, $10, $5, $6, 'r', clock_timestamp() + $7 * interval '1 ms', $8, 'v', 0, $9, $11)`,
      [
        id,
        accountId,
        accountId,
        key,
        JSON.stringify(params),
        randomBytes(32),
        deadlineMs,
        hold.toString(),
        callbackUrl ?? null,
        type,
        isCancelBilled,
      ],
    );
    const holds = [{ id, amountNanos: hold, keyId: accountId }];
    const verdicts = await applyIn(client, { accountId, holds });
    expect(verdicts.holds).toEqual([{ admitted: true }]);
  });
  return id;
}

async function row(pool: Pool, id: string): Promise<Stored> {
  const { rows } = await pool.query<Stored>("select * from task where id = $1", [id]);
  if (rows[0] === undefined) throw new Error(`no task ${id}`);
  return rows[0];
}

async function events(pool: Pool, id: string, kind: string) {
  const sql = "select state, detail from task_event where task_id = $1 and kind = $2 order by id";
  return (await pool.query<{ state: string; detail: unknown }>(sql, [id, kind])).rows;
}

/** Wait of a test for an event that never happens. */
const untilMs = 40_000;

/** Asks again and again; the answers are what counts, not the time. */
export async function until<T>(look: () => Promise<T | undefined>): Promise<T> {
  const signal = AbortSignal.timeout(untilMs);
  for (;;) {
    signal.throwIfAborted();
    const found = await look();
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
