/**
 * Brings the settlements of journals that dead processes left into the database.
 *
 * Whether a process is dead cannot be known for sure: process ids are equal in two containers, and a stopped
 * process may go on. So a file is not judged but taken over, by renaming it, and read after that. A process
 * that still writes to it looks at the name after each fsync, and writes once more, to a new file, what may
 * have come too late to be read. What both then bring to the database is booked once, by the id of its hold.
 * Needs a file system where a renamed file is seen to be so at once: any local one.
 */
import {
  access,
  constants,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
} from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { journalLookMs, journalRetryMs, journalSilentMs } from "../../config/limits.ts";
import type { WorkerName } from "../../core/worker-name.ts";
import { decodeJournal, segmentSuffix, type JournalEntry } from "./journal-segment.ts";
import { prefixOf, Journal, type JournalOptions, type JournalStats } from "./journal.ts";

/** What {@link JournalReplay} needs. */
export interface ReplayOptions {
  /** The folder of the journals. */
  readonly folder: string;
  /** What the names of this process's own files begin with. */
  readonly prefix: string;
  /** As in the journal: files of the same supervisor's other workers are taken over only when they are silent. */
  readonly worker?: WorkerName | undefined;
  /** Which of these holds the database knows. Rejects while it is away: asked again. */
  readonly knownHolds: (ids: readonly string[]) => Promise<ReadonlySet<string>>;
  /** Settles; resolves once it is durable in the database. Rejects where that refuses it as invalid. */
  readonly settle: (entry: JournalEntry) => Promise<void>;
  /** Says that this process uses its own files; called with each look. Default: it has none. */
  readonly touch?: () => Promise<void>;
  /** How often is looked for abandoned files, in milliseconds. Default `journalLookMs`. */
  readonly lookMs?: number;
  /** How long a file must have been silent, in milliseconds. Default `journalSilentMs`. */
  readonly silentMs?: number;
  /** Told what an operator must know, without secrets. Default: nobody. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** As in the journal. */
  readonly at?: (point: string) => void;
}

/** The most settlements that are sent at once. */
const chunkMax = 1_000;

/** Ends the names of files whose holds this database does not know: the next start tries them again. */
const unknownSuffix = ".unknown";

/** Ends the names of files that an operator must look at. */
const damagedSuffix = ".damaged";

/** Takes over and replays, in the background. */
export class JournalReplay {
  readonly #options: Required<ReplayOptions>;
  readonly #stopped = new AbortController();
  /** Files that are ours now and not replayed yet. */
  readonly #taken: string[] = [];
  /** By name of a file of others: when it was last said to be used, and since when we know of that. */
  readonly #seen = new Map<string, { readonly usedMs: number; readonly sinceMs: number }>();
  #takenCount = 0;
  #entries = 0;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;

  constructor(options: ReplayOptions) {
    this.#options = {
      lookMs: journalLookMs,
      silentMs: journalSilentMs,
      touch: async () => {},
      alarm: () => {},
      at: () => {},
      worker: undefined,
      ...options,
    };
  }

  /** Settlements of others that have been read and are not in the database yet. */
  get entries(): number {
    return this.#entries;
  }

  /** Takes over what is there, without waiting for silence: most starts follow the end of the process whose
   * journal it is. A worker leaves out those of the others, which live. Then looks again and again. */
  start(): void {
    this.#working = this.#run(() => this.#takeAll());
    this.#timer = setInterval(() => {
      this.#working ??= this.#run(() => this.#takeSilent());
      void this.#touch();
    }, this.#options.lookMs);
    this.#timer.unref();
  }

  /** Ends. What is not in the database yet stays for the next start of a process. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#stopped.abort();
    await this.#working;
  }

  async #run(take: () => Promise<void>): Promise<void> {
    const { folder, alarm } = this.#options;
    try {
      await take();
    } catch (error) {
      const message = "the folder of the settlement journal cannot be used: outages may cost money";
      alarm(message, { folder, err: error });
    }
    for (let path = this.#taken[0]; path !== undefined; path = this.#taken[0]) {
      await this.#replay(path);
      if (this.#stopped.signal.aborted) break;
      this.#taken.shift();
    }
    this.#working = undefined;
  }

  async #takeAll(): Promise<void> {
    const { folder } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await access(folder, constants.R_OK | constants.W_OK);
    for (const name of await this.#others(segmentSuffix, unknownSuffix)) {
      if (!this.#isOfOtherWorker(name)) await this.#take(name);
    }
  }

  #isOfOtherWorker(name: string): boolean {
    const { worker } = this.#options;
    if (worker === undefined || !name.startsWith(worker.supervisorId)) return false;
    return !name.startsWith(prefixOf(worker));
  }

  async #takeSilent(): Promise<void> {
    const names = await this.#others(segmentSuffix);
    for (const name of this.#seen.keys()) if (!names.includes(name)) this.#seen.delete(name);
    const nowMs = performance.now();
    for (const name of names) {
      const found = await stat(join(this.#options.folder, name)).catch(() => undefined);
      if (found === undefined) continue;
      const { mtimeMs: usedMs } = found;
      const seen = this.#seen.get(name);
      // Two looks of this process: the clock of whoever uses the file does not matter.
      if (seen?.usedMs !== usedMs) this.#seen.set(name, { usedMs, sinceMs: nowMs });
      else if (nowMs - seen.sinceMs >= this.#options.silentMs) await this.#take(name);
    }
  }

  async #others(...suffixes: string[]): Promise<string[]> {
    const names = await readdir(this.#options.folder);
    return names
      .filter((name) => suffixes.some((suffix) => name.endsWith(suffix)))
      .filter((name) => !name.startsWith(this.#options.prefix))
      .toSorted();
  }

  async #take(name: string): Promise<void> {
    const { folder, prefix } = this.#options;
    const path = join(folder, `${prefix}-taken-${++this.#takenCount}${segmentSuffix}`);
    try {
      await rename(join(folder, name), path);
      this.#taken.push(path);
    } catch (error) {
      // Another process was quicker.
      if (!isMissing(error)) throw error;
    }
  }

  async #touch(): Promise<void> {
    await this.#options.touch();
    const now = new Date();
    for (const path of this.#taken) await utimes(path, now, now).catch(() => {});
  }

  /** Settles what is in a file, and lets it go. */
  async #replay(path: string): Promise<void> {
    const { at } = this.#options;
    let bytes: Buffer;
    try {
      bytes = await readFile(path);
    } catch (error) {
      // A process that started meanwhile has taken it.
      if (isMissing(error)) return;
      return this.#setAside(path, damagedSuffix, { err: error });
    }
    const { entries, damagedLines } = decodeJournal(bytes);
    this.#entries = entries.length;
    const known = await this.#known(entries.map(({ id }) => id));
    const mine = entries.filter(({ id }) => known.has(id));
    const refused = await this.#settle(mine);
    this.#entries = 0;
    if (this.#stopped.signal.aborted) return;
    at("journal.replayed");
    const unknown = entries.length - mine.length;
    const fields = { entries: entries.length, unknown, refused, damagedLines };
    if (unknown > 0) return this.#setAside(path, unknownSuffix, fields);
    if (refused + damagedLines > 0) return this.#setAside(path, damagedSuffix, fields);
    await rm(path, { force: true });
    at("journal.truncated");
  }

  /** Asks until the database answers or this is stopped. */
  async #known(ids: readonly string[]): Promise<ReadonlySet<string>> {
    const { signal } = this.#stopped;
    while (ids.length > 0 && !signal.aborted) {
      try {
        return await this.#options.knownHolds(ids);
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

  /** Keeps a file for people, or for a start on its own database. */
  async #setAside(path: string, suffix: string, fields: object): Promise<void> {
    const kept = `${path.slice(0, -segmentSuffix.length)}${suffix}`;
    await rename(path, kept).catch(() => {});
    const why =
      suffix === unknownSuffix
        ? "settlements of a journal concern no call of this database: kept for a start on theirs"
        : "a journal holds settlements that cannot be booked: look at the file";
    this.#options.alarm(why, { ...fields, file: kept });
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}

/* Puts the journal together: its own files, and those that dead processes left. */

/** What {@link openJournal} needs. */
interface OpenJournalOptions extends JournalOptions {
  /** The database. Contains a password: never logged. */
  readonly url: string;
  /** Books a settlement of a dead process; see {@link JournalReplay}. */
  readonly settle: (entry: JournalEntry) => Promise<void>;
}

/** A journal in use. */
export interface OpenJournal {
  /** This process's own. */
  readonly own: Journal;
  /** Of the own one and of those that are being replayed. */
  stats(): JournalStats;
  /** Ends the replay. What is not booked yet stays for the next start of a process. */
  stopReplay(): Promise<void>;
}

/** How long to wait for a connection, in milliseconds. */
const connectTimeoutMs = 2_000;

/**
 * Opens it, and replays what is there in the background: the holds of those calls still keep their money, so
 * that nothing can be spent twice meanwhile, and no start waits for a long journal.
 */
export function openJournal({ url, settle, ...options }: OpenJournalOptions): OpenJournal {
  const own = new Journal(options);
  const replay = new JournalReplay({
    folder: options.folder,
    prefix: own.prefix,
    worker: options.worker,
    knownHolds: (ids) => knownHolds(url, ids),
    settle,
    touch: () => own.touch(),
    ...(options.alarm && { alarm: options.alarm }),
    ...(options.at && { at: options.at }),
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

/** Which of these holds the database knows. Holds are never deleted: it has made those that it does not know
 * nowhere. A connection of its own, for it is rarely needed. */
async function knownHolds(url: string, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: connectTimeoutMs,
    application_name: "uas-journal",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const text = "select id from hold where id = any($1::uuid[])";
    const { rows } = await client.query<{ id: string }>(text, [ids]);
    return new Set(rows.map(({ id }) => id));
  } finally {
    await client.end().catch(() => {});
  }
}
