/**
 * The settlement journal of a process: one append-only file on this machine's disk, for settlements
 * that the database does not take now. The file is removed once the database has all of its
 * entries.
 */
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder, syncFolder } from "../../core/files.ts";
import {
  journalBytesMax,
  journalCompactBytes,
  journalEntriesMax,
  journalRetryMs,
} from "../../core/limits.ts";
import { encodeEntry, type JournalEntry } from "./journal-entry.ts";

/** Options of {@link Journal}. */
export interface JournalOptions {
  /** Its file. It and its folder are created with the first entry. */
  readonly path: string;
  /** The most pending settlements. Default `journalEntriesMax`; tests lower it. */
  readonly entriesMax?: number;
  /** The most bytes of the file. Default `journalBytesMax`; tests lower it. */
  readonly bytesMax?: number;
  /**
   * The size from which the file is written anew. Default `journalCompactBytes`; tests lower it.
   */
  readonly compactBytes?: number;
  /** Logs alarms for operators, without secrets. Default: no log. */
  readonly alarm?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
  /**
   * Called at points whose names begin with `journal.`; tests kill the process there. Default: no
   * callback.
   */
  readonly failpoint?: (point: string) => void;
}

/** Counts of a journal. */
export interface JournalStats {
  /** Settlements that are not in the database yet. */
  readonly entries: number;
  /** Bytes of the file. */
  readonly bytes: number;
  /** Attempts to write that failed, since the start. */
  readonly failures: number;
}

/** An entry that the database does not have yet. */
interface Pending {
  readonly entry: JournalEntry;
  readonly isKept: Promise<boolean>;
  readonly resolve: (isKept: boolean) => void;
  /** The length of its line in the file. 0 until it is durable. */
  bytes: number;
}

/** The most settlements of one fsync. */
const groupMax = 1_000;

/** The journal of a process. */
export class Journal {
  readonly #options: Required<JournalOptions>;
  /** By id. */
  readonly #pending = new Map<string, Pending>();
  #queue: Pending[] = [];
  #file: FileHandle | undefined;
  /** Whether the name of the file is durable. */
  #isNamed = false;
  /** The durable length of the file, and of the lines in it that are still pending. */
  #bytes = 0;
  #pendingBytes = 0;
  /** The size from which the file is written anew. */
  #compactBytes: number;
  #working: Promise<void> | undefined;
  #failures = 0;
  #failedMs = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: JournalOptions) {
    this.#options = {
      entriesMax: journalEntriesMax,
      bytesMax: journalBytesMax,
      compactBytes: journalCompactBytes,
      alarm: () => {},
      failpoint: () => {},
      ...options,
    };
    this.#compactBytes = this.#options.compactBytes;
  }

  /** Whether it takes no more settlements: calls that may need it must not begin. */
  get isFull(): boolean {
    const { entriesMax, bytesMax } = this.#options;
    return this.#pending.size >= entriesMax || this.#bytes >= bytesMax;
  }

  /**
   * Whether {@link keep} can succeed now: the journal is open and not full, and no write failed a
   * moment ago.
   */
  get isReady(): boolean {
    if (this.#isClosed || this.isFull) return false;
    return performance.now() - this.#failedMs >= journalRetryMs;
  }

  /**
   * Keeps an entry. Entries that arrive during a write share the next fsync. Never rejects.
   *
   * @returns whether it is durable. False: it could not be written; an alarm was logged.
   */
  keep(entry: JournalEntry): Promise<boolean> {
    const known = this.#pending.get(entry.id);
    if (known !== undefined) return known.isKept;
    if (!this.isReady) return Promise.resolve(false);
    const { promise: isKept, resolve } = Promise.withResolvers<boolean>();
    const pending = { entry, isKept, resolve, bytes: 0 };
    this.#pending.set(entry.id, pending);
    this.#queue.push(pending);
    this.#working ??= this.#work();
    return isKept;
  }

  /** Drops a settlement that the database has now. */
  forget(id: string): void {
    this.#pendingBytes -= this.#pending.get(id)?.bytes ?? 0;
    this.#pending.delete(id);
    if (this.#isUnused) this.#working ??= this.#work();
  }

  stats(): JournalStats {
    return { entries: this.#pending.size, bytes: this.#bytes, failures: this.#failures };
  }

  /**
   * Writes what is queued, and closes. A file with settlements stays for the next start of a
   * process.
   */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#working;
    await this.#file?.close().catch(() => {});
  }

  /** Whether the database has all entries of the file. */
  get #isUnused(): boolean {
    return this.#file !== undefined && this.#pending.size === 0;
  }

  /** Does what is to do, one step after the other. */
  async #work(): Promise<void> {
    while (this.#queue.length > 0 || this.#isUnused) {
      if (this.#queue.length > 0) await this.#write(this.#queue.splice(0, groupMax));
      else await this.#remove();
      const isMostlyDone = this.#pendingBytes < this.#bytes / 2;
      if (isMostlyDone && this.#bytes >= this.#compactBytes) await this.#compact();
    }
    this.#working = undefined;
  }

  async #write(group: readonly Pending[]): Promise<void> {
    const lines = group.map(({ entry }) => Buffer.from(encodeEntry(entry)));
    const isKept = await this.#append(Buffer.concat(lines));
    for (const [index, pending] of group.entries()) {
      const { id } = pending.entry;
      if (!isKept) {
        this.#pending.delete(id);
      } else if (this.#pending.has(id)) {
        // Otherwise the database took it meanwhile.
        pending.bytes = lines[index]?.length ?? 0;
        this.#pendingBytes += pending.bytes;
      }
      pending.resolve(isKept);
    }
  }

  /**
   * Adds text behind the durable length. What a failed write has left there is overwritten by the
   * next one.
   */
  async #append(text: Buffer): Promise<boolean> {
    const { path, failpoint } = this.#options;
    try {
      this.#file ??= await createFile(path);
      await writeAt(this.#file, text, this.#bytes);
      failpoint("journal.written");
      await this.#file.datasync();
      if (!this.#isNamed) await syncFolder(dirname(path));
      this.#isNamed = true;
      failpoint("journal.synced");
      this.#bytes += text.length;
      return true;
    } catch (error) {
      await this.#file?.truncate(this.#bytes).catch(() => {});
      this.#onFailure(error);
      return false;
    }
  }

  async #remove(): Promise<void> {
    await this.#file?.close().catch(() => {});
    await rm(this.#options.path, { force: true }).catch(() => {});
    this.#file = undefined;
    this.#isNamed = false;
    this.#bytes = 0;
    this.#options.failpoint("journal.removed");
  }

  /**
   * Writes the pending entries to a new file, which replaces the old one: otherwise the file would
   * grow for as long as the database is slow, and would never be without a pending entry.
   */
  async #compact(): Promise<void> {
    const { path, failpoint } = this.#options;
    const written = [...this.#pending.values()].filter(({ bytes }) => bytes > 0);
    const text = Buffer.from(written.map(({ entry }) => encodeEntry(entry)).join(""));
    const newPath = `${path}.new`;
    let file: FileHandle | undefined;
    try {
      file = await createFile(newPath);
      await writeAt(file, text, 0);
      await file.datasync();
      failpoint("journal.copied");
      await rename(newPath, path);
    } catch {
      await file?.close().catch(() => {});
      await rm(newPath, { force: true }).catch(() => {});
      // The disk has no space for a copy, so the old file is used up to its limit.
      this.#compactBytes = 2 * this.#bytes;
      return;
    }
    await this.#file?.close().catch(() => {});
    this.#file = file;
    // The next entry is durable only with the new name.
    this.#isNamed = false;
    this.#bytes = text.length;
    this.#compactBytes = this.#options.compactBytes;
    failpoint("journal.compacted");
  }

  #onFailure(err: unknown): void {
    this.#failures++;
    this.#failedMs = performance.now();
    const message = "the settlement journal cannot be written: settlements wait for the database";
    this.#options.alarm(message, { file: this.#options.path, err });
  }
}

/**
 * Creates an empty file and its folder, readable by this user only. @throws the file system's error
 */
async function createFile(path: string): Promise<FileHandle> {
  await makeFolder(dirname(path));
  return open(path, "w", 0o600);
}

async function writeAt(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}
