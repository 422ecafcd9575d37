/**
 * The newest checkpoint and the newest acknowledged booking, kept outside the database: in the data folder, and in the
 * bucket of results where there is one. A database that was taken back to an earlier state does not have them (I13).
 */
import { mkdir, open, readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { isMissingFile, syncFolder } from "../../core/files.ts";
import { formatUsd } from "../../core/money.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import type { AuditBreach } from "./audit.ts";
import { type Checkpoint, hasCheckpoint, newestCheckpoint } from "./checkpoint.ts";

/** A place outside the database for one small text. */
export interface AnchorPlace {
  /** Where it is, for operators. */
  readonly name: string;
  /** `undefined`: nothing was written yet. @throws where the place cannot be read */
  read(): Promise<string | undefined>;
  /** Replaces the text. @throws where the place cannot be written */
  write(text: string): Promise<void>;
}

/** What is kept outside. */
interface Anchored {
  readonly checkpoint?: Pick<Checkpoint, "n" | "hash" | "time" | "entries" | "sums"> | undefined;
  /** The transaction of the newest booking that this installation has acknowledged. */
  readonly booking?: { readonly txnId: string; readonly time: string } | undefined;
}

/** Logs what an operator should know. */
export type AnchorLog = (message: string, fields: Readonly<Record<string, unknown>>) => void;

/** See {@link Anchor}. */
export interface AnchorOptions {
  /** The plain pool of the database. */
  readonly pool: Queryable;
  /** Where copies are kept; bookings only at the first. Default: nowhere. */
  readonly places?: readonly AnchorPlace[];
  /** Default: nothing is logged. */
  readonly warn?: AnchorLog;
  /** Logs that the database has lost bookings. Default: `warn`. */
  readonly alarm?: AnchorLog;
}

const remedy =
  "Restore a newer backup; or, if this state is meant, accept it with " +
  '`uas ledger accept --reason "…"`';

/** Compares the database with what is kept outside, and keeps what is new. */
export class Anchor {
  readonly #pool: Queryable;
  readonly #places: readonly AnchorPlace[];
  readonly #warn: AnchorLog;
  readonly #alarm: AnchorLog;
  /** The newest booking, until it is kept. */
  #noted: string | undefined;

  constructor({ pool, places = [], warn = () => {}, alarm = warn }: AnchorOptions) {
    this.#pool = pool;
    this.#places = places;
    this.#warn = warn;
    this.#alarm = alarm;
  }

  /** Where copies are kept, for operators. */
  get names(): readonly string[] {
    return this.#places.map(({ name }) => name);
  }

  /** I13: what is kept outside and the database does not have. A place that cannot be read is reported and skipped. */
  async findLosses(): Promise<AuditBreach[]> {
    const found: AuditBreach[] = [];
    for (const place of this.#places) found.push(...(await this.#lossesOf(place)));
    return found;
  }

  /** The highest number of a checkpoint that is kept outside; 0 where there is none. */
  async highestNumber(): Promise<number> {
    const kept = await Promise.all(this.#places.map((place) => this.#read(place)));
    return Math.max(0, ...kept.map(({ checkpoint }) => checkpoint?.n ?? 0));
  }

  /** Keeps a checkpoint. @param isAccepted whether an operator has accepted that what was kept is lost. Default false */
  async keep(checkpoint: Checkpoint, isAccepted = false): Promise<void> {
    const { n, hash, time, entries, sums } = checkpoint;
    for (const place of this.#places) {
      const { booking } = isAccepted ? {} : await this.#read(place);
      await this.#write(place, { checkpoint: { n, hash, time, entries, sums }, booking });
    }
  }

  /**
   * Keeps an acknowledged booking, at the first place. Does nothing but raise an alarm where the database lacks what is
   * kept there already: that is the proof of a loss. Never throws: the booking is done.
   */
  async keepBooking(txnId: string): Promise<void> {
    const [place] = this.#places;
    if (place === undefined) return;
    try {
      const losses = await this.#lossesOf(place);
      if (losses.length > 0) return this.#alarm("the database has lost bookings", { losses });
      const { checkpoint } = await this.#read(place);
      const booking = { txnId, time: new Date().toISOString() };
      await this.#write(place, { checkpoint, booking });
    } catch (error) {
      this.#warn("the newest booking could not be kept", { err: error });
    }
  }

  /** Remembers a charge until the next {@link flush}. Costs nothing: it is called for every call. */
  note(txnId: string): void {
    this.#noted = txnId;
  }

  /** Keeps what was noted since the last time. */
  async flush(): Promise<void> {
    const txnId = this.#noted;
    this.#noted = undefined;
    if (txnId !== undefined) await this.keepBooking(txnId);
  }

  async #lossesOf(place: AnchorPlace): Promise<AuditBreach[]> {
    const { checkpoint, booking } = await this.#read(place);
    const details: string[] = [];
    if (checkpoint !== undefined && !(await hasCheckpoint(this.#pool, checkpoint))) {
      details.push(
        `checkpoint ${described(checkpoint)}, which ${place.name} names, is not in the database: ` +
          `its newest is checkpoint ${described(await newestCheckpoint(this.#pool))}`,
      );
    }
    if (booking !== undefined && !(await this.#hasTransaction(booking.txnId))) {
      details.push(
        `transaction ${booking.txnId}, which was acknowledged at ${booking.time} as ${place.name} says, ` +
          "is not in the database",
      );
    }
    return details.map((detail) => ({
      rule: "I13",
      detail: `${detail}. Bookings are lost: the database was taken back to an earlier state. ${remedy}`,
    }));
  }

  async #hasTransaction(txnId: string): Promise<boolean> {
    // Charges are found by their calls, for a charge is found by its account only.
    const text =
      "select from call where id = $1 " +
      "union all select from ledger_side where txn_id = $1 " +
      "union all select from ledger_charge where id = $1 limit 1";
    return (await this.#pool.query(text, [txnId])).rows.length > 0;
  }

  async #read(place: AnchorPlace): Promise<Anchored> {
    try {
      return JSON.parse((await place.read()) ?? "{}") as Anchored;
    } catch (error) {
      this.#warn("the ledger's checkpoint cannot be read", { place: place.name, err: error });
      return {};
    }
  }

  async #write(place: AnchorPlace, anchored: Anchored): Promise<void> {
    try {
      await place.write(`${JSON.stringify(anchored, null, 2)}\n`);
    } catch (error) {
      this.#warn("the ledger's checkpoint cannot be kept", { place: place.name, err: error });
    }
  }
}

/** A checkpoint for operators. */
export function described({
  n,
  time,
  entries,
  sums,
}: Pick<Checkpoint, "n" | "time" | "entries" | "sums">): string {
  if (n === 0) return "0 (nothing was audited yet)";
  const balances = formatUsd(BigInt(sums["1"] ?? 0));
  return `${n} of ${time} (${entries} entries, balances of ${balances} USD)`;
}

/**
 * Reads the identity of a database, by which its copies are named: a data folder may serve several databases. The first
 * process gives it one; a backup keeps it.
 */
export async function ledgerIdentity(pool: Queryable): Promise<string> {
  await pool.query("insert into ledger_identity default values on conflict do nothing");
  const { rows } = await pool.query<{ id: string }>("select id from ledger_identity");
  if (rows[0] === undefined) throw new Error("the database has no identity");
  return rows[0].id;
}

/** A file as a place. It is replaced as a whole: a crash leaves the old one or the new one. */
export function createAnchorFile(path: string): AnchorPlace {
  const folder = dirname(path);
  return {
    name: path,
    read: () => readFile(path, "utf8").catch(unlessMissing),
    async write(text) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      // Each process has a temporary file of its own.
      const temporary = `${path}.${process.pid}`;
      const handle = await open(temporary, "w", 0o600);
      try {
        await handle.writeFile(text);
        await handle.sync();
      } finally {
        await handle.close();
      }
      await rename(temporary, path);
      await syncFolder(folder);
    },
  };
}

function unlessMissing(error: unknown): undefined {
  if (isMissingFile(error)) return undefined;
  throw error;
}
