/**
 * Replays journals that ended processes left: their settlements go to the database, each once by
 * the id of its hold. In the background: the holds of those calls still reserve the money, so that
 * nothing can be spent twice meanwhile, and no start waits for a long journal.
 */
import { access, constants, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { isMissingFile, makeFolder } from "../../core/files.ts";
import { journalRetryMs } from "../../core/limits.ts";
import { type DatabaseAddress, toServer } from "../../db/pool/server.ts";
import { decodeJournal, type JournalEntry } from "./journal-entry.ts";

/** Options of {@link JournalReplay}. */
export interface ReplayOptions {
  /** The folder of the journals. */
  readonly folder: string;
  /** The names of the files. Files that do not exist are skipped. */
  readonly left: readonly string[];
  /**
   * Returns the entries that the database contains, by the IDs of their holds. It is called again
   * if it rejects because the database is unreachable.
   */
  readonly findKnown: (entries: readonly JournalEntry[]) => Promise<ReadonlySet<string>>;
  /**
   * Books an entry; resolves once it is durable in the database. Rejects if the database refuses it
   * as invalid.
   */
  readonly settle: (entry: JournalEntry) => Promise<void>;
  /** Logs alarms for operators, without secrets. Default: no log. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Like the journal's. */
  readonly failpoint?: ((point: string) => void) | undefined;
}

/** The most settlements in flight. */
const chunkMax = 1_000;

/** Replays the journals of ended processes, one after the other. */
export class JournalReplay {
  readonly #options: ReplayOptions;
  readonly #stopped = new AbortController();
  #entries = 0;
  #working: Promise<void> | undefined;

  constructor(options: ReplayOptions) {
    this.#options = options;
  }

  /** Number of settlements that were read and are not in the database yet. */
  get entries(): number {
    return this.#entries;
  }

  /** Begins. Never rejects. */
  start(): void {
    this.#working = this.#run();
  }

  /**
   * Stops. Settlements that are not in the database yet stay in their files for the next start of a
   * process.
   */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#working;
  }

  async #run(): Promise<void> {
    const { folder, left, alarm } = this.#options;
    try {
      await makeFolder(folder);
      await access(folder, constants.R_OK | constants.W_OK);
    } catch (error) {
      const message = "the folder of the settlement journal cannot be used: outages may cost money";
      alarm?.(message, { folder, err: error });
    }
    for (const name of left) {
      if (this.#stopped.signal.aborted) return;
      await this.#replay(join(folder, name));
    }
  }

  /**
   * Settles the entries of a file, and removes it. A file that cannot be booked completely stays:
   * the next start tries again, for example on the right database.
   */
  async #replay(file: string): Promise<void> {
    const { alarm, failpoint } = this.#options;
    const message =
      "a settlement journal cannot be booked completely: the file stays, and is tried again at each start";
    let bytes: Buffer;
    try {
      bytes = await readFile(file);
    } catch (error) {
      if (!isMissingFile(error)) alarm?.(message, { file, err: error });
      return;
    }
    const { entries, damagedLines } = decodeJournal(bytes);
    this.#entries = entries.length;
    const known = await this.#known(entries);
    const mine = entries.filter(({ id }) => known.has(id));
    const refused = await this.#settle(mine);
    this.#entries = 0;
    if (this.#stopped.signal.aborted) return;
    failpoint?.("journal.replayed");
    const unknown = entries.length - mine.length;
    if (unknown + refused + damagedLines > 0) {
      const counts = { entries: entries.length, unknown, refused, damagedLines };
      alarm?.(message, { file, ...counts });
      return;
    }
    await rm(file, { force: true }).catch(() => {});
    failpoint?.("journal.removed");
  }

  /** Retries until the database answers or the replay is stopped. */
  async #known(entries: readonly JournalEntry[]): Promise<ReadonlySet<string>> {
    const { signal } = this.#stopped;
    while (entries.length > 0 && !signal.aborted) {
      try {
        return await this.#options.findKnown(entries);
      } catch {
        await delay(journalRetryMs, undefined, { signal, ref: false }).catch(() => {});
      }
    }
    return new Set();
  }

  /** Returns how many the database refused. */
  async #settle(entries: readonly JournalEntry[]): Promise<number> {
    const { signal } = this.#stopped;
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    let refused = 0;
    for (let start = 0; start < entries.length && !signal.aborted; start += chunkMax) {
      const chunk = entries.slice(start, start + chunkMax);
      const all = Promise.allSettled(chunk.map((entry) => this.#options.settle(entry)));
      const results = (await Promise.race([all, stopped])) ?? [];
      refused += results.filter(({ status }) => status === "rejected").length;
      this.#entries -= results.length;
    }
    return refused;
  }
}

/** Maximum wait for a connection. */
const connectTimeoutMs = 2_000;

/**
 * Returns the holds that the database has or had: of old ones, the charge or the record remains. An
 * unknown one belongs to another database. Uses a separate connection, because it is rarely needed.
 */
export async function knownHolds(
  url: DatabaseAddress,
  entries: readonly Pick<JournalEntry, "id" | "accountId">[],
): Promise<ReadonlySet<string>> {
  const client = toServer(url).createClient({
    connectLimitMs: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
    application_name: "uas-journal",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const text =
      "select id from open_hold where id = any($1::uuid[]) " +
      "union select txn_id from ledger_side where txn_id = any($1::uuid[]) " +
      "union select id from ended_hold where account_id = any($2::uuid[]) and id = any($1::uuid[]) " +
      "union select id from call where id = any($1::uuid[])";
    const { rows } = await client.query<{ id: string }>(text, [
      entries.map(({ id }) => id),
      [...new Set(entries.map(({ accountId }) => accountId))],
    ]);
    return new Set(rows.map(({ id }) => id));
  } finally {
    await client.end().catch(() => {});
  }
}
