/**
 * The settlement journal: keeps settlements on this machine's disk while the database is away. Append-only files below
 * the data folder, named for the start of the process; a file is removed once the database has all of its entries. Where
 * the disk takes none, they go to the reserve.
 */
import { join } from "node:path";
import {
  journalBytesMax,
  journalEntriesMax,
  journalReserveBytes,
  journalRetryMs,
  journalSegmentBytesMax,
} from "../../core/limits.ts";
import { JournalReserve } from "./journal-reserve.ts";
import {
  encodeEntry,
  reserveSuffix,
  Segment,
  segmentSuffix,
  type Identified,
  type JournalEntry,
} from "./journal-segment.ts";
import { isProcessAlive, processSpaceId } from "../../core/process-space.ts";
import { newId } from "../../core/uuid.ts";

/** Options of {@link openJournal}. */
export interface JournalOptions {
  /** What its entries are, in log lines. Default `settlement`. */
  readonly entryName?: string;
  /** The folder of its files; created with the first one. */
  readonly folder: string;
  /** The most pending settlements. Default `journalEntriesMax`; tests lower it. */
  readonly entriesMax?: number;
  /** The most bytes of its files. Default `journalBytesMax`; tests lower it. */
  readonly bytesMax?: number;
  /** The length at which a new file begins. Default `journalSegmentBytesMax`; tests lower it. */
  readonly segmentBytesMax?: number;
  /** The space that {@link Journal.touch} keeps in reserve. Default `journalReserveBytes`; tests lower it. */
  readonly reserveBytes?: number;
  /** Logs what an operator must know, without secrets. Default: nothing. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Called at points whose names begin with `journal.`; tests kill the process there. Default: nothing. */
  readonly failpoint?: (point: string) => void;
}

/**
 * Whether the process whose journal has this file name is known to be dead. False where it lives, or runs in another
 * container or on another machine, where nobody can tell.
 */
export function isOwnerDead(fileName: string): boolean {
  const [, space, pid] = /^[^.]+\.([0-9a-f]+)\.(\d+)-/.exec(fileName) ?? [];
  // A process of this id that wrote other files was an earlier one.
  return space === processSpaceId && (Number(pid) === process.pid || !isProcessAlive(Number(pid)));
}

/** Counts of a journal. */
export interface JournalStats {
  /** Settlements that the database does not have yet. */
  readonly entries: number;
  /** Bytes of the files. */
  readonly bytes: number;
  /** Attempts to write that failed, since the start. */
  readonly failures: number;
}

interface Waiting<Entry extends Identified> {
  readonly entry: Entry;
  readonly resolve: (isKept: boolean) => void;
}

/** The first `count` lines of those that were to be written. */
interface Written {
  /** The file that has them durably; `undefined`: none could be written. */
  readonly segment: Segment | undefined;
  readonly count: number;
}

/** The most settlements of one fsync. */
const groupMax = 1_000;

/** The journal of one start of a process. */
export class Journal<Entry extends Identified = JournalEntry> {
  /** The prefix of its files: unique to this start of the process, which it names for {@link isOwnerDead}. */
  readonly prefix: string = `${newId()}.${processSpaceId}.${process.pid}`;
  readonly #options: Required<JournalOptions>;
  readonly #reserve: JournalReserve;
  /** By id: the file that has it; `undefined` while it is being written. */
  readonly #entries = new Map<string, Segment | undefined>();
  readonly #segments = new Set<Segment>();
  #current: Segment | undefined;
  #segmentCount = 0;
  #queue: Waiting<Entry>[] = [];
  #writing: Promise<void> | undefined;
  /** Whether bytes are on their way into {@link #current}: it must not be removed. */
  #isInFlight = false;
  #removing: Promise<void> = Promise.resolve();
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #alarmed = { message: "", atMs: Number.NEGATIVE_INFINITY };
  #isClosed = false;

  constructor(options: JournalOptions) {
    this.#options = {
      entryName: "settlement",
      entriesMax: journalEntriesMax,
      bytesMax: journalBytesMax,
      segmentBytesMax: journalSegmentBytesMax,
      reserveBytes: journalReserveBytes,
      alarm: () => {},
      failpoint: () => {},
      ...options,
    };
    const { folder, reserveBytes: bytes } = this.#options;
    this.#reserve = new JournalReserve({
      path: join(folder, `${this.prefix}-0${reserveSuffix}`),
      bytes,
      onMissing: (error) => {
        const message = `the ${this.#options.entryName} journal got no space in reserve: a full disk can cost money while the database is away`;
        this.#options.alarm(message, { folder, bytes, err: error });
      },
    });
  }

  /** Whether it takes no more settlements: calls that may need it must not begin. */
  get isFull(): boolean {
    const { entriesMax, bytesMax } = this.#options;
    return this.#entries.size >= entriesMax || this.#bytes() >= bytesMax;
  }

  /** Whether {@link keep} can succeed now: the journal is open, not full, and has a file or its reserve, or no write failed
   * a moment ago. */
  get isReady(): boolean {
    if (this.#isClosed || this.isFull) return false;
    if (this.#current !== undefined || this.#reserve.isFree) return true;
    return performance.now() - this.#failedMs >= journalRetryMs;
  }

  /**
   * Keeps an entry. Entries that arrive during a write share the next fsync. Never rejects.
   *
   * @returns whether it is durable. False: it could not be written; an alarm was logged.
   */
  keep(entry: Entry): Promise<boolean> {
    if (!this.isReady) return Promise.resolve(false);
    if (this.#entries.has(entry.id)) return this.#isKept(entry.id);
    this.#entries.set(entry.id, undefined);
    return new Promise((resolve) => {
      this.#queue.push({ entry, resolve });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Whether a settlement that was passed to {@link keep} before is durable, once that is known. */
  async #isKept(id: string): Promise<boolean> {
    await this.#writing;
    return this.#entries.get(id) !== undefined;
  }

  /** Drops a settlement that the database has now. */
  forget(id: string): void {
    const segment = this.#entries.get(id);
    if (!this.#entries.delete(id) || segment === undefined) return;
    segment.waiting--;
    this.#removeIfUnused(segment);
  }

  stats(): JournalStats {
    return { entries: this.#entries.size, bytes: this.#bytes(), failures: this.#failures };
  }

  /** Marks the files of this process as in use, and makes the reserve where there is none. Never rejects. */
  async touch(): Promise<void> {
    for (const segment of this.#segments) await segment.touch();
    await this.#reserve.keep();
  }

  /** Writes what is queued, and closes. Files with settlements stay for the next start of a process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
    await this.#removing;
    await this.#reserve.close();
    for (const segment of this.#segments) await segment.close();
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) await this.#writeGroup(this.#queue.splice(0, groupMax));
    this.#writing = undefined;
  }

  async #writeGroup(group: readonly Waiting<Entry>[]): Promise<void> {
    const lines = group.map(({ entry }) => Buffer.from(encodeEntry(entry)));
    for (let start = 0; start < group.length; ) {
      this.#isInFlight = true;
      const { segment, count } = await this.#write(lines.slice(start));
      const end = start + count;
      for (const { entry, resolve } of group.slice(start, end))
        this.#written(entry.id, segment, resolve);
      // Only now that its pending entries are counted.
      this.#isInFlight = end < group.length;
      start = end;
      if (segment === undefined) continue;
      if (segment.bytes >= this.#options.segmentBytesMax) this.#retire(segment);
      else this.#removeIfUnused(segment);
    }
  }

  #written(id: string, segment: Segment | undefined, resolve: Waiting<Entry>["resolve"]): void {
    if (segment === undefined) {
      this.#entries.delete(id);
    } else if (this.#entries.has(id)) {
      // Otherwise the database took it meanwhile.
      this.#entries.set(id, segment);
      segment.waiting++;
    }
    resolve(segment !== undefined);
  }

  /** Writes as many of these lines as a file has room for. */
  async #write(lines: readonly Buffer[]): Promise<Written> {
    try {
      return await this.#append(lines);
    } catch (error) {
      if (this.#current !== undefined) this.#retire(this.#current);
      this.#current = await this.#takeReserve(lines);
      this.#onFailure(error);
    }
    return this.#current === undefined
      ? { segment: undefined, count: lines.length }
      : this.#write(lines);
  }

  /** @throws the file system's error */
  async #append(lines: readonly Buffer[]): Promise<Written> {
    const { failpoint } = this.#options;
    for (;;) {
      const segment = (this.#current ??= await this.#begin());
      const count = segment.countFitting(lines);
      if (count > 0) {
        const text = Buffer.concat(lines.slice(0, count));
        if (await segment.append(text, () => failpoint("journal.written"))) {
          failpoint("journal.synced");
          return { segment, count };
        }
      }
      this.#retire(segment);
    }
  }

  /** Counts a failed write, and logs it where that is news. */
  #onFailure(err: unknown): void {
    this.#failures++;
    const nowMs = (this.#failedMs = performance.now());
    const { entryName } = this.#options;
    const left = this.#current === undefined ? "wait for the database" : "go to its reserve";
    const message = `the ${entryName} journal cannot be written: ${entryName}s ${left}`;
    const { message: before, atMs } = this.#alarmed;
    if (message === before && nowMs - atMs < journalRetryMs) return;
    this.#alarmed = { message, atMs: nowMs };
    this.#options.alarm(message, { folder: this.#options.folder, err });
  }

  async #begin(): Promise<Segment> {
    const segment = await Segment.create(this.#nextPath());
    this.#segments.add(segment);
    return segment;
  }

  async #takeReserve([first]: readonly Buffer[]): Promise<Segment | undefined> {
    // A line that is longer would never fit.
    if (first !== undefined && first.length > this.#options.reserveBytes) return undefined;
    // It may be on its way back.
    await this.#removing;
    const segment = await this.#reserve.take(this.#nextPath());
    if (segment !== undefined) this.#segments.add(segment);
    return segment;
  }

  #nextPath(): string {
    return join(this.#options.folder, `${this.prefix}-${++this.#segmentCount}${segmentSuffix}`);
  }

  /** Ends the segment: it gets no more entries, and is removed once none of its entries is pending. */
  #retire(segment: Segment): void {
    this.#current = undefined;
    this.#removeIfUnused(segment);
  }

  /** Removes the segment where it has no pending entry. One that is being written to is checked again afterwards. */
  #removeIfUnused(segment: Segment): void {
    const isUsed = segment === this.#current && (this.#isInFlight || this.#queue.length > 0);
    if (segment.waiting > 0 || isUsed || !this.#segments.delete(segment)) return;
    if (segment === this.#current) this.#current = undefined;
    this.#removing = this.#removing.then(() => this.#remove(segment));
  }

  async #remove(segment: Segment): Promise<void> {
    if (this.#reserve.owns(segment)) {
      await this.#reserve.giveBack(segment);
    } else {
      await segment.remove();
    }
    this.#options.failpoint("journal.truncated");
  }

  #bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments) bytes += segment.bytes;
    return bytes;
  }
}
