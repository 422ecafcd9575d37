/**
 * Keeps settlements on this machine's disk while the database does not take them. Append-only files below the
 * data folder, named for the start of the process; a file is removed once the database has all that is in it.
 */
import type { WorkerName } from "../../core/worker-name.ts";
import { join } from "node:path";
import {
  journalBytesMax,
  journalEntriesMax,
  journalRetryMs,
  journalSegmentBytesMax,
} from "../../config/limits.ts";
import { encodeEntry, Segment, segmentSuffix, type JournalEntry } from "./journal-segment.ts";
import { newId } from "../../core/uuid.ts";

/** What {@link openJournal} needs. */
export interface JournalOptions {
  /** The folder of its files; made with the first one. */
  readonly folder: string;
  /** Which of several workers this process is. Default: it is alone. */
  readonly worker?: WorkerName | undefined;
  /** The most settlements that wait in it. Default `journalEntriesMax`; tests lower it. */
  readonly entriesMax?: number;
  /** The most bytes of its files. Default `journalBytesMax`; tests lower it. */
  readonly bytesMax?: number;
  /** The length from which a file gets a successor. Default `journalSegmentBytesMax`; tests lower it. */
  readonly segmentBytesMax?: number;
  /** Told what an operator must know, without secrets. Default: nobody. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /** Told where it is, by names that begin with `journal.`; tests end the process there. Default: nobody. */
  readonly at?: (point: string) => void;
}

/** What the names of files begin with that this worker, or one before it in its place, has written. */
export function prefixOf({ supervisorId, number }: WorkerName): string {
  return `${supervisorId}-${number}-`;
}

/** What a journal holds. */
export interface JournalStats {
  /** Settlements that the database does not have yet. */
  readonly entries: number;
  /** Bytes of the files. */
  readonly bytes: number;
  /** Attempts to write that failed, since the start. */
  readonly failures: number;
}

interface Waiting {
  readonly entry: JournalEntry;
  readonly resolve: (isKept: boolean) => void;
}

/** The most settlements of one fsync. */
const groupMax = 1_000;

/** The journal of one start of a process. */
export class Journal {
  /** What the names of its files begin with: no other start of any process has the same. */
  readonly prefix: string;
  readonly #options: Required<JournalOptions>;
  /** By id: where it stands; `undefined` while it is being written. */
  readonly #entries = new Map<string, Segment | undefined>();
  readonly #segments = new Set<Segment>();
  #current: Segment | undefined;
  #segmentCount = 0;
  #queue: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Whether bytes are on their way into {@link #current}: it must not be removed. */
  #isInFlight = false;
  #removing: Promise<void> = Promise.resolve();
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: JournalOptions) {
    this.#options = {
      entriesMax: journalEntriesMax,
      bytesMax: journalBytesMax,
      segmentBytesMax: journalSegmentBytesMax,
      alarm: () => {},
      at: () => {},
      worker: undefined,
      ...options,
    };
    const { worker } = options;
    this.prefix = worker === undefined ? newId() : `${prefixOf(worker)}${newId()}`;
  }

  /** Whether it takes no more: the work that would need it must not begin. */
  get isFull(): boolean {
    const { entriesMax, bytesMax } = this.#options;
    return this.#entries.size >= entriesMax || this.#bytes() >= bytesMax;
  }

  /** Whether {@link keep} can succeed now: not full, and not just failed. */
  get isReady(): boolean {
    return !this.#isClosed && !this.isFull && performance.now() - this.#failedMs >= journalRetryMs;
  }

  /**
   * Keeps a settlement; those that come while one is being written share the next fsync. Never rejects.
   *
   * @returns whether it is durable. False: it could not be written; the operator has been told.
   */
  keep(entry: JournalEntry): Promise<boolean> {
    if (!this.isReady) return Promise.resolve(false);
    if (this.#entries.has(entry.id)) return this.#isKept(entry.id);
    this.#entries.set(entry.id, undefined);
    return new Promise((resolve) => {
      this.#queue.push({ entry, resolve });
      this.#writing ??= this.#writeAll();
    });
  }

  /** Whether one that was asked for before is durable, once that is known. */
  async #isKept(id: string): Promise<boolean> {
    await this.#writing;
    return this.#entries.get(id) !== undefined;
  }

  /** The database has this settlement: it is not needed here any more. */
  forget(id: string): void {
    const segment = this.#entries.get(id);
    if (!this.#entries.delete(id) || segment === undefined) return;
    segment.waiting--;
    this.#tidy(segment);
  }

  stats(): JournalStats {
    return { entries: this.#entries.size, bytes: this.#bytes(), failures: this.#failures };
  }

  /** Says that this process lives and uses its files. */
  async touch(): Promise<void> {
    for (const segment of this.#segments) await segment.touch();
  }

  /** Writes what was asked for before, and closes. What is in it stays for the next start of a process. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#writing;
    await this.#removing;
    for (const segment of this.#segments) await segment.close();
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0) {
      const group = this.#queue.splice(0, groupMax);
      this.#isInFlight = true;
      const segment = await this.#write(group.map(({ entry }) => encodeEntry(entry)).join(""));
      for (const { entry, resolve } of group) this.#written(entry.id, segment, resolve);
      // Only now that it is counted what waits in it.
      this.#isInFlight = false;
      if (segment === undefined) continue;
      if (segment.bytes >= this.#options.segmentBytesMax) this.#retire(segment);
      else this.#tidy(segment);
    }
    this.#writing = undefined;
  }

  #written(id: string, segment: Segment | undefined, resolve: Waiting["resolve"]): void {
    if (segment === undefined) {
      this.#entries.delete(id);
    } else if (this.#entries.has(id)) {
      // Otherwise the database took it meanwhile.
      this.#entries.set(id, segment);
      segment.waiting++;
    }
    resolve(segment !== undefined);
  }

  /** Returns where the text stands durably; `undefined`: it could not be written. */
  async #write(text: string): Promise<Segment | undefined> {
    const { at, alarm, folder } = this.#options;
    try {
      for (;;) {
        const segment = (this.#current ??= await this.#begin());
        if (await segment.append(text, () => at("journal.written"))) {
          at("journal.synced");
          return segment;
        }
        this.#retire(segment);
      }
    } catch (error) {
      this.#failures++;
      this.#failedMs = performance.now();
      if (this.#current !== undefined) this.#retire(this.#current);
      const message = "the settlement journal cannot be written: settlements wait for the database";
      alarm(message, { folder, err: error });
      return undefined;
    }
  }

  async #begin(): Promise<Segment> {
    const name = `${this.prefix}-${++this.#segmentCount}${segmentSuffix}`;
    const segment = await Segment.create(join(this.#options.folder, name));
    this.#segments.add(segment);
    return segment;
  }

  /** The segment gets no more. It goes once nothing in it waits. */
  #retire(segment: Segment): void {
    this.#current = undefined;
    this.#tidy(segment);
  }

  /** Removes the segment where nothing needs it. What is being written to is looked at again afterwards. */
  #tidy(segment: Segment): void {
    const isUsed = segment === this.#current && (this.#isInFlight || this.#queue.length > 0);
    if (segment.waiting > 0 || isUsed || !this.#segments.delete(segment)) return;
    if (segment === this.#current) this.#current = undefined;
    this.#removing = this.#removing.then(() => this.#remove(segment));
  }

  async #remove(segment: Segment): Promise<void> {
    await segment.remove();
    await segment.close();
    this.#options.at("journal.truncated");
  }

  #bytes(): number {
    let bytes = 0;
    for (const segment of this.#segments) bytes += segment.bytes;
    return bytes;
  }
}
