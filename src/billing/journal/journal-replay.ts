/**
 * Replays journals that dead processes left: their settlements go to the database.
 *
 * Across containers no test proves that a process is dead, and a stopped one may resume: its files are left alone until
 * nobody has touched them for a while. Even then a file is taken over by renaming it, and read after that. A process that still writes to the file checks
 * the name after each fsync, and writes entries again, to a new file, that may have come too late to be read. Entries
 * that both processes send are booked once, by the id of their hold. This requires a file system where a rename is
 * visible at once: any local one.
 */
import {
  access,
  constants,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  truncate,
  utimes,
} from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { journalScanMs, journalRetryMs, journalSilentMs } from "../../core/limits.ts";
import { isMissingFile, makeFolder } from "../../core/files.ts";
import {
  decodeJournal,
  reserveSuffix,
  segmentSuffix,
  type Identified,
  type JournalEntry,
} from "./journal-segment.ts";
import { isOwnerDead, Journal, type JournalOptions, type JournalStats } from "./journal.ts";
import { type DatabaseAddress, toServer } from "../../db/pool/server.ts";

/** What finds the hold of an entry. */
type HoldRef = Pick<JournalEntry, "id" | "accountId">;

/** Options of {@link JournalReplay}. */
export interface ReplayOptions<Entry extends Identified = JournalEntry> {
  /** What the entries are, in log lines. Default `settlement`. */
  readonly entryName?: string;
  /** The folder of the journals. */
  readonly folder: string;
  /** The prefix of this process's own files. */
  readonly prefix: string;
  /** Which of these the database knows, by the ids of their holds or tasks. Rejects while it is away, and is then called
   * again. */
  readonly findKnown: (entries: readonly Entry[]) => Promise<ReadonlySet<string>>;
  /** Applies an entry; resolves once it is durable in the database. Rejects where that refuses it as invalid. */
  readonly apply: (entry: Entry) => Promise<void>;
  /** The most entries that are applied at once. Default 1,000. */
  readonly chunkMax?: number;
  /** Marks this process's own files as in use; called at the start and with each scan. Default: it has none. */
  readonly touch?: () => Promise<void>;
  /** How often the folder is scanned for abandoned files, in milliseconds. Default `journalScanMs`. */
  readonly scanMs?: number;
  /** How long a file must have been unused, in milliseconds. Default `journalSilentMs`. */
  readonly silentMs?: number;
  /** Logs what an operator must know, without secrets. Default: nothing. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** As in the journal. */
  readonly failpoint?: (point: string) => void;
}

/** The most settlements in flight. */
const chunkMaxDefault = 1_000;

/** Suffix of files whose holds this database does not have: the next start tries them again. */
const unknownSuffix = ".unknown";

/** Suffix of files that an operator must inspect. */
const damagedSuffix = ".damaged";

/** Takes over and replays abandoned journals, in the background. */
export class JournalReplay<Entry extends Identified = JournalEntry> {
  readonly #options: Required<ReplayOptions<Entry>>;
  readonly #stopped = new AbortController();
  /** Files that were taken over and are not replayed yet. */
  readonly #taken: string[] = [];
  /** By name of another process's file: its last modification, and when this process first saw that. */
  readonly #seen = new Map<string, { readonly usedMs: number; readonly sinceMs: number }>();
  #takenCount = 0;
  #entries = 0;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;

  constructor(options: ReplayOptions<Entry>) {
    this.#options = {
      entryName: "settlement",
      chunkMax: chunkMaxDefault,
      scanMs: journalScanMs,
      silentMs: journalSilentMs,
      touch: async () => {},
      alarm: () => {},
      failpoint: () => {},
      ...options,
    };
  }

  /** How many settlements of others have been read and are not in the database yet. */
  get entries(): number {
    return this.#entries;
  }

  /** Takes over the files of dead processes at once: most starts follow the end of the process that wrote them. Files of
   * live processes, and of those that nobody here can judge, follow when they were unused for a while. */
  start(): void {
    this.#working = this.#run(() => this.#takeFirst());
    this.#timer = setInterval(() => {
      this.#working ??= this.#run(() => this.#takeSilent());
      void this.#touch();
    }, this.#options.scanMs);
    this.#timer.unref();
  }

  /** Stops. Settlements that are not in the database yet stay in their files for the next start of a process. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopped.abort();
    await this.#working;
  }

  async #run(take: () => Promise<void>): Promise<void> {
    const { folder, alarm, entryName } = this.#options;
    try {
      await take();
    } catch (error) {
      const message = `the folder of the ${entryName} journal cannot be used: outages may cost money`;
      alarm(message, { folder, err: error });
    }
    for (let path = this.#taken[0]; path !== undefined; path = this.#taken[0]) {
      await this.#replay(path);
      if (this.#stopped.signal.aborted) break;
      this.#taken.shift();
    }
    this.#working = undefined;
  }

  /** The own reserve comes second: it may need the space of a dead process's. */
  async #takeFirst(): Promise<void> {
    try {
      await this.#takeAll();
    } finally {
      await this.#touch();
    }
  }

  async #takeAll(): Promise<void> {
    const { folder } = this.#options;
    await makeFolder(folder);
    await access(folder, constants.R_OK | constants.W_OK);
    for (const name of await this.#namesOfOthers(segmentSuffix, unknownSuffix, reserveSuffix)) {
      // Nobody writes to those that were put aside.
      if (name.endsWith(unknownSuffix) || isOwnerDead(name)) await this.#take(name);
    }
  }

  async #takeSilent(): Promise<void> {
    const names = await this.#namesOfOthers(segmentSuffix, reserveSuffix);
    for (const name of this.#seen.keys()) if (!names.includes(name)) this.#seen.delete(name);
    const nowMs = performance.now();
    for (const name of names) {
      const found = await stat(join(this.#options.folder, name)).catch(() => undefined);
      if (found === undefined) continue;
      const { mtimeMs: usedMs } = found;
      const seen = this.#seen.get(name);
      // Two scans of this process are compared, so that the clock of the file's owner does not matter.
      if (seen?.usedMs !== usedMs) this.#seen.set(name, { usedMs, sinceMs: nowMs });
      else if (nowMs - seen.sinceMs >= this.#options.silentMs) await this.#take(name);
    }
  }

  async #namesOfOthers(...suffixes: string[]): Promise<string[]> {
    const names = await readdir(this.#options.folder);
    return names
      .filter((name) => suffixes.some((suffix) => name.endsWith(suffix)))
      .filter((name) => !name.startsWith(this.#options.prefix))
      .toSorted();
  }

  async #take(name: string): Promise<void> {
    const { folder, prefix } = this.#options;
    // It has no settlements: its space is needed.
    if (name.endsWith(reserveSuffix)) return rm(join(folder, name), { force: true });
    const path = join(folder, `${prefix}-taken-${++this.#takenCount}${segmentSuffix}`);
    try {
      await rename(join(folder, name), path);
      this.#taken.push(path);
    } catch (error) {
      // Another process was quicker.
      if (!isMissingFile(error)) throw error;
    }
  }

  async #touch(): Promise<void> {
    await this.#options.touch();
    const now = new Date();
    for (const path of this.#taken) await utimes(path, now, now).catch(() => {});
  }

  /** Settles the entries of a file, and removes it. */
  async #replay(path: string): Promise<void> {
    const { failpoint } = this.#options;
    let bytes: Buffer;
    try {
      bytes = await readFile(path);
    } catch (error) {
      // A process that started meanwhile has taken the file.
      if (isMissingFile(error)) return;
      return this.#quarantine(path, damagedSuffix, { err: error });
    }
    const { entries, damagedLines } = decodeJournal<Entry>(bytes);
    this.#entries = entries.length;
    const known = await this.#known(entries);
    const mine = entries.filter(({ id }) => known.has(id));
    const refused = await this.#apply(mine);
    this.#entries = 0;
    if (this.#stopped.signal.aborted) return;
    failpoint("journal.replayed");
    const unknown = entries.length - mine.length;
    const fields = { entries: entries.length, unknown, refused, damagedLines };
    if (unknown + refused + damagedLines > 0) {
      await truncate(path, bytes.findLastIndex((byte) => byte !== 0) + 1).catch(() => {});
      const suffix = unknown > 0 ? unknownSuffix : damagedSuffix;
      return this.#quarantine(path, suffix, fields);
    }
    await rm(path, { force: true });
    failpoint("journal.truncated");
  }

  /** Retries until the database answers or the replay is stopped. */
  async #known(entries: readonly Entry[]): Promise<ReadonlySet<string>> {
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
  async #apply(entries: readonly Entry[]): Promise<number> {
    const { signal } = this.#stopped;
    const { chunkMax } = this.#options;
    const stopped = new Promise<undefined>((resolve) => {
      signal.addEventListener("abort", () => resolve(undefined), { once: true });
    });
    let refused = 0;
    for (let start = 0; start < entries.length && !signal.aborted; start += chunkMax) {
      const chunk = entries.slice(start, start + chunkMax);
      const all = Promise.allSettled(chunk.map((entry) => this.#options.apply(entry)));
      const results = (await Promise.race([all, stopped])) ?? [];
      refused += results.filter(({ status }) => status === "rejected").length;
      this.#entries -= results.length;
    }
    return refused;
  }

  /** Renames a file that cannot be replayed, for an operator or for a start on the right database. */
  async #quarantine(path: string, suffix: string, fields: object): Promise<void> {
    const kept = `${path.slice(0, -segmentSuffix.length)}${suffix}`;
    await rename(path, kept).catch(() => {});
    const { entryName } = this.#options;
    const why =
      suffix === unknownSuffix
        ? `a journal has ${entryName}s of another database: kept for a start on that one`
        : `a journal has ${entryName}s that cannot be booked: inspect the file`;
    this.#options.alarm(why, { ...fields, file: kept });
  }
}

interface OpenJournalOptions extends JournalOptions {
  /** The database. Contains a password: never logged. */
  readonly url: DatabaseAddress;
  /** Books a settlement of a dead process. Resolves once it is durable in the database. */
  readonly settle: (entry: JournalEntry) => Promise<void>;
}

/** A journal in use. */
export interface OpenJournal {
  /** This process's own journal. */
  readonly own: Journal;
  /** Counts of the own journal and of those that are being replayed. */
  stats(): JournalStats;
  /** Stops the replay. Settlements that are not booked yet stay for the next start of a process. */
  stopReplay(): Promise<void>;
}

/** How long to wait for a connection, in milliseconds. */
const connectTimeoutMs = 2_000;

/**
 * Opens the journal, and replays abandoned ones in the background: the holds of their calls still reserve the money, so
 * that nothing can be spent twice meanwhile, and no start waits for a long journal.
 */
export function openJournal({ url, settle, ...options }: OpenJournalOptions): OpenJournal {
  const own = new Journal(options);
  const replay = new JournalReplay({
    folder: options.folder,
    prefix: own.prefix,
    findKnown: (entries) => knownHolds(url, entries),
    apply: settle,
    touch: () => own.touch(),
    ...(options.alarm && { alarm: options.alarm }),
    ...(options.failpoint && { failpoint: options.failpoint }),
  });
  replay.start();
  return {
    own,
    stats() {
      const stats = own.stats();
      return { ...stats, entries: stats.entries + replay.entries };
    },
    stopReplay: () => replay.stop(),
  };
}

/** Which of these holds the database has or had: of old ones, the charge or the record is left. An unknown one belongs to
 * another database. On a connection of its own, for it is rarely needed. */
async function knownHolds(
  url: DatabaseAddress,
  entries: readonly HoldRef[],
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
