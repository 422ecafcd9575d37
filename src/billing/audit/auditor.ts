/** Audits the ledger step by step from the newest checkpoint on, one process at a time. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool, PoolClient } from "pg";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { firstId } from "../../db/partition.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import { type AuditBreach, auditLedger, breachesMax } from "./audit.ts";
import { auditHours, auditNow, type AuditWindow, auditWindow } from "./audit-step.ts";
import {
  type Acceptance,
  addCheckpoint,
  type Checkpoint,
  newestCheckpoint,
  type NotedCheckpoint,
  verifyChain,
  verifyNoted,
} from "./checkpoint.ts";

/** The result of an audit. */
export interface AuditReport {
  /** At most 100. Empty if no rule is broken. */
  readonly breaches: readonly AuditBreach[];
  /** The newest checkpoint; its number is 0 if there is none. */
  readonly checkpoint: Checkpoint;
  /** Whether everything before the start was audited; otherwise the next audit continues. */
  readonly isComplete: boolean;
}

/** Options of an audit. Times are in milliseconds. */
export interface AuditOptions {
  /** Maximum wait while another process audits. Default 0. */
  readonly waitMs?: number;
  /** Time in which new steps begin. Default {@link auditMaxMs}. */
  readonly maxMs?: number;
  /** A checkpoint that the chain must contain (I13). Default: no check. */
  readonly expected?: NotedCheckpoint | undefined;
}

/** Options of accepting a state. */
export interface AcceptOptions extends Pick<AuditOptions, "waitMs"> {
  /** Records the operator who accepted it, in the same transaction. Default: no record. */
  readonly record?: (client: PoolClient, checkpoint: Checkpoint) => Promise<void>;
}

/** Time limit of an hourly audit; the next one continues. */
const auditMaxMs = 5 * 60 * 1_000;

/** Maximum wait for transactions that began before an audit. They take milliseconds. */
const settleMaxMs = 5_000;

/**
 * Minimum age of a hold before it is audited: clocks of processes differ, and a hold below the
 * audited IDs would be missed.
 */
const holdAgeMs = 10 * 60 * 1_000;

/** About how many entries, and at most how many holds and calls, one step reads. */
const stepRows = 50_000;
/** Number of entry numbers in the first step. A number covers a batch of up to 200 entries. */
const firstNumbers = 2_000;

/** The advisory lock of an audit: any fixed number. */
const auditLock = 0x7561_6175;
const lockPollMs = 100;

/** Audits, and adds to the chain of checkpoints. */
export class Auditor {
  readonly #pool: Pool;

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  /**
   * Audits what is new since the newest checkpoint, and compares balances, keys and open holds. A
   * step without a breach adds a checkpoint. A step with a breach is audited again the next time.
   *
   * @returns `undefined` if another process is auditing
   */
  run(options: AuditOptions = {}): Promise<AuditReport | undefined> {
    const { waitMs = 0, maxMs = auditMaxMs, expected } = options;
    return this.exclusively(waitMs, async (client) => {
      const missing = expected === undefined ? [] : await verifyNoted(client, expected);
      const previous = await newestCheckpoint(client);
      const steps = await audit(client, previous, performance.now() + maxMs);
      const { checkpoint, isComplete } = steps;
      const now = await auditNow(client, checkpoint.seq);
      const breaches = [...missing, ...steps.breaches, ...now].slice(0, breachesMax);
      return { breaches, checkpoint, isComplete };
    });
  }

  /**
   * Like {@link run}, and also checks the whole ledger and the whole chain again. Reads every row.
   */
  async runFull(options: AuditOptions = {}): Promise<AuditReport | undefined> {
    const report = await this.run(options);
    if (report === undefined) return undefined;
    const whole = [...(await auditLedger(this.#pool)), ...(await verifyChain(this.#pool))];
    const known = new Set(report.breaches.map(({ rule, detail }) => `${rule} ${detail}`));
    const more = whole.filter(({ rule, detail }) => !known.has(`${rule} ${detail}`));
    return { ...report, breaches: [...report.breaches, ...more].slice(0, breachesMax) };
  }

  /**
   * Accepts new entries that break a rule: the chain continues after them, and the new checkpoint
   * says why. Entries are append-only, so otherwise each audit would stop at the same entries.
   *
   * @throws GatewayError INVALID_REQUEST if there is nothing to accept
   */
  accept(
    reason: string,
    { waitMs = 0, record }: AcceptOptions = {},
  ): Promise<Checkpoint | undefined> {
    return this.exclusively(waitMs, async (client) => {
      const previous = await newestCheckpoint(client);
      const steps = await audit(client, previous, Number.POSITIVE_INFINITY);
      const breaches = steps.breaches.map(({ rule, detail }) => `${rule} ${detail}`);
      if (breaches.length === 0) {
        throw new GatewayError(
          ErrorCode.INVALID_REQUEST,
          "the audit finds nothing that needs to be accepted; nothing was changed",
        );
      }
      return acceptRest(client, steps.checkpoint, { accepted: { reason, breaches }, record });
    });
  }

  /**
   * Runs work while no other process audits or removes rows that audits read.
   *
   * @param waitMs maximum wait for another process
   * @returns undefined if another process continues
   */
  async exclusively<Result>(
    waitMs: number,
    work: (client: PoolClient) => Promise<Result>,
  ): Promise<Result | undefined> {
    const client = await this.#pool.connect();
    // The next query reports a broken connection; without a listener, the event would end the
    // process.
    const ignore = (): void => {};
    client.on("error", ignore);
    try {
      const result = (await takeLock(client, waitMs)) ? await work(client) : undefined;
      await client.query("select pg_advisory_unlock_all()");
      client.off("error", ignore);
      client.release();
      return result;
    } catch (error) {
      // A refusal comes between transactions. Anything else closes the connection, and with it
      // transaction and lock.
      const isSound = error instanceof GatewayError;
      if (isSound) await client.query("select pg_advisory_unlock_all()");
      client.release(!isSound);
      throw error;
    }
  }
}

async function takeLock(client: Queryable, waitMs: number): Promise<boolean> {
  const endMs = performance.now() + waitMs;
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>(
      "select pg_try_advisory_lock($1) as locked",
      [auditLock],
    );
    if (rows[0]?.locked) return true;
    if (performance.now() >= endMs) return false;
    await sleep(lockPollMs);
  }
}

/** Audits step by step; stops at the first step with a breach. */
async function audit(client: Queryable, from: Checkpoint, endMs: number): Promise<AuditReport> {
  const seq = (await settledNumber(client)) ?? from.seq;
  const holdId = await endOfHolds(client, from.holdId);
  let checkpoint = from;
  let numbers = firstNumbers;
  while (BigInt(checkpoint.seq) < BigInt(seq) || checkpoint.holdId < holdId) {
    if (performance.now() >= endMs) return { breaches: [], checkpoint, isComplete: false };
    const window = await nextWindow(client, checkpoint, { numbers, seq, holdId });
    const isLast = window.toSeq === seq && window.toId === holdId;
    const step = await auditStep(client, checkpoint, window, isLast);
    if ("breaches" in step) return { ...step, checkpoint, isComplete: false };
    const entries = step.checkpoint.entries - checkpoint.entries;
    if (step.checkpoint === checkpoint) break;
    numbers = Math.max(1, Math.min(numbers * 4, Math.ceil((numbers * stepRows) / (entries || 1))));
    checkpoint = step.checkpoint;
  }
  return { breaches: [], checkpoint, isComplete: true };
}

/**
 * Audits a window in a transaction, so that all statements see one snapshot, and adds its
 * checkpoint; none for a last window without rows, which the next audit starts with.
 */
async function auditStep(
  client: Queryable,
  previous: Checkpoint,
  window: AuditWindow,
  isLast: boolean,
): Promise<{ readonly breaches: readonly AuditBreach[] } | { readonly checkpoint: Checkpoint }> {
  await client.query("begin isolation level repeatable read");
  const breaches = [...(await auditWindow(client, window)), ...(await auditHours(client, window))];
  if (breaches.length > 0) {
    await client.query("rollback");
    return { breaches };
  }
  const isSkipped = isLast && !(await hasRows(client, window));
  const checkpoint = isSkipped ? previous : await addCheckpoint(client, previous, window);
  await client.query("commit");
  return { checkpoint };
}

/** Goes over everything that is left without checking it. */
async function acceptRest(
  client: PoolClient,
  previous: Checkpoint,
  {
    accepted,
    record,
  }: {
    readonly accepted: Acceptance;
    readonly record: AcceptOptions["record"];
  },
): Promise<Checkpoint> {
  const toSeq = (await settledNumber(client)) ?? previous.seq;
  const toId = await endOfHolds(client, previous.holdId);
  const window = { fromSeq: previous.seq, toSeq, fromId: previous.holdId, toId };
  await client.query("begin isolation level repeatable read");
  const checkpoint = await addCheckpoint(client, previous, window, accepted);
  await record?.(client, checkpoint);
  await client.query("commit");
  return checkpoint;
}

async function hasRows(client: Queryable, window: AuditWindow): Promise<boolean> {
  const { fromSeq, toSeq, fromId, toId } = window;
  const { rows } = await client.query<{ found: boolean }>(
    `select exists (select from ledger_entry where seq > $1 and seq <= $2)
       or exists (select from released_hold where seq > $1 and seq <= $2)
       or exists (select from call where id >= $3 and id < $4) as found`,
    [fromSeq, toSeq, fromId, toId],
  );
  return rows[0]?.found ?? false;
}

/**
 * The newest entry number up to which every entry has been committed or will never be. A number is
 * drawn by a transaction that holds a lock and so has an id: once all transactions that were
 * running have ended, no entry with a lower number can appear. Undefined means one of them takes
 * too long.
 */
async function settledNumber(client: Queryable): Promise<string | undefined> {
  const { rows: numbers } = await client.query<{ seq: string }>(
    "select case when is_called then last_value else 0 end as seq from ledger_entry_seq",
  );
  const { rows: ends } = await client.query<{ end: string }>(
    // An id of our own is above those of all running transactions. The upper end of a snapshot is
    // not: it is that of the newest transaction that has ended.
    'select pg_current_xact_id()::text as "end"',
  );
  const endMs = performance.now() + settleMaxMs;
  for (;;) {
    const { rows } = await client.query<{ ended: boolean }>(
      "select pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8 as ended",
      [ends[0]?.end],
    );
    if (rows[0]?.ended) return numbers[0]?.seq;
    if (performance.now() >= endMs) return undefined;
    await sleep(lockPollMs);
  }
}

/** The id below which all holds have ended; at least `from`. */
async function endOfHolds(client: Queryable, from: string): Promise<string> {
  const { rows } = await client.query<{ id: string | null; now: Date }>(
    "select (select id from open_hold order by id limit 1) as id, clock_timestamp() as now",
  );
  const limit = firstId(new Date((rows[0]?.now.getTime() ?? 0) - holdAgeMs));
  const open = rows[0]?.id ?? limit;
  const end = open < limit ? open : limit;
  return end > from ? end : from;
}

async function nextWindow(
  client: Queryable,
  { seq: fromSeq, holdId: fromId }: Checkpoint,
  end: { readonly numbers: number; readonly seq: string; readonly holdId: string },
): Promise<AuditWindow> {
  const toSeq = BigInt(fromSeq) + BigInt(end.numbers);
  const { rows } = await client.query<{ id: string }>(
    "select id from call where id >= $1 and id < $2 order by id offset $3 limit 1",
    [fromId, end.holdId, stepRows],
  );
  return {
    fromSeq,
    toSeq: toSeq < BigInt(end.seq) ? toSeq.toString() : end.seq,
    fromId,
    toId: rows[0]?.id ?? end.holdId,
  };
}
