/** Writes records of calls that were refused before a hold: in batches, bounded, best effort. */
import { callsJson } from "../calls/call-columns.ts";
import type { CallRow } from "../calls/call-row.ts";
import type { Turn, Work, WorkSource } from "./dispatcher.ts";
import type { Statement } from "./ledger-connection.ts";

/** The most pending records: an outage must not fill the memory with refusals. */
const callLogMax = 10_000;

/** The most records of one statement. */
const batchMax = 500;

const recordStatement: Statement = {
  name: "call_record",
  text: "select call_write($1::json)",
};

/** The queue of pending records. */
export class CallLog implements WorkSource {
  turn: Turn = "idle";
  readonly #onWork: () => void;
  #rows: CallRow[] = [];
  /** Halves of a batch that the database refused as a whole. */
  #refusedHalves: CallRow[][] = [];
  #underWay = 0;
  #dropped = 0;

  constructor(onWork: () => void) {
    this.#onWork = onWork;
  }

  /** Number of pending records. */
  get size(): number {
    return this.#rows.length + this.#underWay;
  }

  /** Number of records that were lost because the queue was full or the database refused them. */
  get dropped(): number {
    return this.#dropped;
  }

  /**
   * Adds a record; drops it where too many are pending. Its costs are set to 0: no money is booked
   * here.
   */
  add(row: CallRow): void {
    if (this.size >= callLogMax) {
      this.#dropped++;
      return;
    }
    const isFree = row.cost === "0" && row.held === "0" && !row.vendor_cost;
    this.#rows.push(isFree ? row : { ...row, cost: "0", held: "0", vendor_cost: null });
    this.#onWork();
  }

  take(): Work | undefined {
    const part = this.#refusedHalves.shift();
    const rows = part ?? this.#rows.splice(0, batchMax);
    if (rows.length === 0) return undefined;
    if (!part) this.#underWay += rows.length;
    if (this.#rows.length + this.#refusedHalves.length > 0) this.#onWork();
    return {
      statement: recordStatement,
      values: [callsJson(rows)],
      done: () => void (this.#underWay -= rows.length),
      refused: () => this.#refused(rows),
    };
  }

  #refused(rows: CallRow[]): void {
    if (rows.length > 1) {
      const middle = rows.length >> 1;
      this.#refusedHalves.push(rows.slice(0, middle), rows.slice(middle));
      this.#onWork();
    } else {
      this.#underWay--;
      this.#dropped++;
    }
  }
}
