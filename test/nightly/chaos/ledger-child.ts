/**
 * A process with a real ledger and callers that hold, grow, settle and release until it is killed.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "pg";
import { createBillingJobs } from "../../../src/billing/jobs.ts";
import { journalFolder } from "../../../src/billing/journal/journal-files.ts";
import { createLedger, type LedgerWriter } from "../../../src/billing/ledger/ledger-writer.ts";
import { callRow } from "../../unit/billing/calls/call-row.ts";
import { HistoryWriter } from "./history.ts";
import { crashAt, createRandom, endWithParent, type Plan, readPlan, readyWord } from "./plan.ts";
import { newId } from "../../../src/core/uuid.ts";

/** Pause of a refused caller. */
const refusedMs = 10;

/** A caller: one call after another. */
class Caller {
  readonly #plan: Plan;
  readonly #ledger: LedgerWriter;
  readonly #history: HistoryWriter;
  readonly #random: () => number;

  constructor(parts: { plan: Plan; ledger: LedgerWriter; history: HistoryWriter; seed: number }) {
    this.#plan = parts.plan;
    this.#ledger = parts.ledger;
    this.#history = parts.history;
    this.#random = createRandom(parts.seed);
  }

  /** Runs one call. */
  async call(): Promise<void> {
    const id = newId();
    const { accountIds } = this.#plan;
    const accountId = accountIds[this.#upTo(accountIds.length - 1)] ?? "";
    const amount = 20 + this.#upTo(100);
    this.#history.write("hold.ask", id, accountId);
    const isAdmitted = await this.#hold(id, accountId, BigInt(amount));
    if (isAdmitted !== undefined) this.#history.write("hold.told", id, isAdmitted);
    if (isAdmitted !== true) return sleep(refusedMs);
    let held = amount;
    for (let left = this.#upTo(3); left > 0; left--) held = await this.#extend(id, accountId, held);
    await this.#settle(id, accountId, held);
  }

  async #hold(id: string, accountId: string, amountNanos: bigint): Promise<boolean | undefined> {
    try {
      const verdict = await this.#ledger.hold({ id, accountId, amountNanos, keyId: "" });
      return verdict.admitted;
    } catch {
      // 503: it may have been made, and is released then.
      return undefined;
    }
  }

  /** Grows the hold or writes a checkpoint; like streams, sometimes without waiting. */
  async #extend(id: string, accountId: string, held: number): Promise<number> {
    const amount = held + this.#upTo(40);
    const checkpoint = 1 + this.#upTo(held - 1);
    this.#history.write("extend.ask", id, String(checkpoint));
    const record = callRow(id, accountId, { cost: String(checkpoint), held: String(amount) });
    const extended = this.#ledger
      .extend({
        id,
        accountId,
        amountNanos: BigInt(amount),
        checkpointNanos: BigInt(checkpoint),
        record,
      })
      .then(({ heldNanos, closed }) => {
        // A hold that is ended keeps no checkpoint.
        if (!closed) this.#history.write("extend.told", id, String(checkpoint));
        return Math.max(held, Number(heldNanos));
      });
    if (this.#random() < 0.5) return extended;
    extended.catch(() => {});
    return held;
  }

  async #settle(id: string, accountId: string, held: number): Promise<void> {
    const kind = this.#random();
    let cost = 0;
    if (kind > 0.95) cost = held + this.#upTo(50);
    else if (kind > 0.25) cost = 1 + this.#upTo(held - 1);
    this.#history.write("settle.ask", id, String(cost));
    const record = callRow(id, accountId, { cost: String(cost), held: String(held) });
    await this.#ledger.settle({ id, accountId, costNanos: BigInt(cost), record });
    this.#history.write("settle.told", id);
  }

  /** A whole number from 0 to `max`. */
  #upTo(max: number): number {
    return Math.floor(this.#random() * (max + 1));
  }
}

async function main(): Promise<void> {
  const plan = readPlan();
  endWithParent();
  const { url, dataDir, timings } = plan;
  const failpoint = crashAt(plan);
  const points = failpoint === undefined ? {} : { failpoint };
  const history = new HistoryWriter(plan.history);
  const ledger = createLedger({
    url,
    connections: 2,
    journal: { folder: journalFolder(dataDir), names: plan.journal },
    ...timings,
    ...points,
  });
  const pool = new Pool({ connectionString: url, max: 2 });
  pool.on("error", () => {});
  const jobs = createBillingJobs({ pool, nodeId: ledger.nodeId, ...timings, ...points });
  jobs.start();
  const state = { isRunning: true };
  process.once("SIGTERM", () => (state.isRunning = false));
  const settled = Promise.withResolvers<void>();
  const callers = Array.from({ length: plan.workers }, async (_, index) => {
    const caller = new Caller({ plan, ledger, history, seed: plan.seed + index });
    while (state.isRunning) {
      await caller.call();
      settled.resolve();
    }
  });
  // The listeners of a gateway keep its process alive while the database is unreachable; this
  // process has none.
  const alive = setInterval(() => {}, 1_000);
  // A process that is killed before it has done anything proves nothing.
  if (plan.workers > 0) await settled.promise;
  process.stdout.write(`${readyWord}\n`);
  while (state.isRunning) await sleep(20);
  await Promise.all(callers);
  await jobs.stop();
  await ledger.close();
  await pool.end();
  history.close();
  clearInterval(alive);
}

await main();
