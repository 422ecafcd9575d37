/** Compares the answers that clients got with the ledger. */
import type { Pool } from "pg";
import { auditLedger } from "../../../src/billing/audit/audit.ts";
import type { Told } from "./history.ts";

/** Problems of a round. All 0 and empty if there are none. */
export interface Findings {
  /** Acknowledged and not there, or there with less. */
  lost: number;
  /** Charged more than asked for, or more than once. */
  doubled: number;
  /** Whatever else the books say that cannot be. */
  drift: number;
  /** Holds that were not ended, and settlements that stayed in a journal, for 60 s. */
  stuck: number;
  /** The first few, in words. */
  readonly details: string[];
}

/** Counts of checked objects, to prove that there were some. */
export interface Checked {
  readonly calls: number;
  readonly settled: number;
}

/** Nothing wrong yet. */
export function noFindings(): Findings {
  return { lost: 0, doubled: 0, drift: 0, stuck: 0, details: [] };
}

/** The database's state of a call. */
interface Booked {
  readonly id: string;
  readonly state: number;
  readonly settled: bigint;
  /** Sum of the charges of its entries. */
  readonly charged: bigint;
  /** Cost in its record; undefined without a record. */
  readonly cost: bigint | undefined;
}

/** Checks every call of the history, and the books as a whole. */
export async function checkBooks(
  pool: Pool,
  history: ReadonlyMap<string, Told>,
  findings: Findings,
): Promise<Checked> {
  const booked = await readBooked(pool);
  let settled = 0;
  for (const told of history.values()) {
    if (told.isSettled) settled++;
    checkCall(told, booked.get(told.id), findings);
  }
  for (const { id } of booked.values()) {
    if (!history.has(id)) note(findings, "drift", `hold ${id} was asked for by nobody`);
  }
  await noteAudit(pool, findings);
  return { calls: history.size, settled };
}

/** SQL of what each call and each task was charged in all, by its id: for `from` and `join`. */
export const chargesSql = `(select coalesce(call_id, txn_id) as id, sum(amount) as charged
  from ledger_entry where account = 2 group by 1)`;

/** Notes each rule of the ledger that the books break. */
export async function noteAudit(pool: Pool, findings: Findings): Promise<void> {
  for (const { rule, detail } of await auditLedger(pool)) {
    note(findings, "drift", `${rule}: ${detail}`);
  }
}

/** Counts one and keeps the first few in words. */
export function note(
  findings: Findings,
  kind: "lost" | "doubled" | "drift" | "stuck",
  detail: string,
): void {
  findings[kind]++;
  if (findings.details.length < 10) findings.details.push(`${kind}: ${detail}`);
}

function checkCall(told: Told, booked: Booked | undefined, findings: Findings): void {
  const { id, isAdmitted, costNanos, isSettled, checkpoints } = told;
  if (booked === undefined) {
    if (isAdmitted || isSettled) note(findings, "lost", `the hold of ${id} is gone`);
    return;
  }
  if (booked.state === 1) return note(findings, "stuck", `the hold of ${id} is open`);
  const may = [...(isSettled ? [] : checkpoints), ...(costNanos === undefined ? [] : [costNanos])];
  if (isAdmitted === false && booked.settled !== 0n) {
    note(findings, "drift", `${id} was refused and charged ${booked.settled}`);
  } else if (!may.includes(booked.settled)) {
    const most = may.reduce((one, other) => (one > other ? one : other), 0n);
    const kind = booked.settled > most ? "doubled" : "lost";
    note(findings, kind, `${id} was settled with ${booked.settled}, may be ${may.join(" or ")}`);
  }
  if (booked.charged !== booked.settled) {
    const kind = booked.charged > booked.settled ? "doubled" : "lost";
    note(findings, kind, `${id} was settled with ${booked.settled}, charged ${booked.charged}`);
  }
  if (isSettled && booked.cost !== costNanos) {
    note(findings, "lost", `the record of ${id} says ${booked.cost}, not ${costNanos}`);
  }
}

async function readBooked(pool: Pool): Promise<Map<string, Booked>> {
  const { rows } = await pool.query<
    Record<"id" | "settled" | "charged", string> & {
      state: number;
      cost: string | null;
    }
  >(`
    select h.id, h.state, coalesce(h.settled, 0)::text as settled, c.cost::text as cost,
        coalesce(e.charged, 0)::text as charged
      from hold h left join call c on c.id = h.id left join ${chargesSql} e on e.id = h.id`);
  return new Map(
    rows.map(({ id, state, settled, charged, cost }) => [
      id,
      {
        id,
        state,
        settled: BigInt(settled),
        charged: BigInt(charged),
        cost: cost === null ? undefined : BigInt(cost),
      },
    ]),
  );
}
