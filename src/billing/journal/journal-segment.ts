/** One file of the settlement journal: how a process writes it, and the format of its lines. */
import { open, rename, rm, stat, utimes, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { makeFolder, syncFolder } from "../../core/files.ts";
import type { CallRow } from "../calls/call-row.ts";

/** Suffix of files that may have settlements. */
export const segmentSuffix = ".journal";

/** Suffix of files that keep space free for settlements, and have none. */
export const reserveSuffix = ".reserve";

/** A file that this process appends to. */
export class Segment {
  /** How many of its settlements the database does not have yet. */
  waiting = 0;
  /** The durable length of its text. */
  bytes = 0;
  /** Whether a write failed, or another process took the file over: it must not be appended to any more. */
  isBroken = false;
  /** The space that was allocated for it, in bytes, which is all that it may take; `undefined`: it grows. */
  readonly allocatedBytes: number | undefined;
  #path: string;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle, allocatedBytes: number | undefined) {
    this.#path = path;
    this.#file = file;
    this.allocatedBytes = allocatedBytes;
  }

  /**
   * Creates the file and its folder, readable by this user only, with a durable name.
   *
   * @param allocatedBytes space to allocate at once, so that a disk that is full later still takes text. Default: none
   * @throws the file system's error
   */
  static async create(path: string, allocatedBytes?: number): Promise<Segment> {
    const folder = dirname(path);
    await makeFolder(folder);
    const file = await open(path, "wx", 0o600);
    try {
      if (allocatedBytes !== undefined) {
        await writeAt(file, Buffer.alloc(allocatedBytes), 0);
        await file.datasync();
      }
      await syncFolder(folder);
    } catch (error) {
      await file.close().catch(() => {});
      await rm(path, { force: true });
      throw error;
    }
    return new Segment(path, file, allocatedBytes);
  }

  /** How many of these lines, from the first on, it has room for. */
  countFitting(lines: readonly Buffer[]): number {
    if (this.allocatedBytes === undefined) return lines.length;
    let left = this.allocatedBytes - this.bytes;
    const tooMany = lines.findIndex((line) => (left -= line.length) < 0);
    return tooMany < 0 ? lines.length : tooMany;
  }

  /**
   * Adds text and makes it durable.
   *
   * @returns whether a process that takes this file over will read the text. False: one did already, perhaps
   * before the text was written; it must be written elsewhere.
   * @throws where it cannot be written. The file then ends as before, or with an unfinished line. It is broken: the
   * state of a file after a failed fsync is unknown.
   */
  async append(text: Buffer, onWritten: () => void): Promise<boolean> {
    try {
      await writeAt(this.#file, text, this.bytes);
      onWritten();
      await this.#file.datasync();
    } catch (error) {
      this.isBroken = true;
      await this.#file.truncate(this.bytes).catch(() => {});
      throw error;
    }
    // A takeover renames first and reads then: text that was durable before this check of the name is read.
    this.isBroken = !(await this.#hasItsName());
    if (this.isBroken) return false;
    this.bytes += text.length;
    return true;
  }

  /** Gives the file another name of the same folder, durably. @throws the file system's error */
  async rename(path: string): Promise<void> {
    await rename(this.#path, path);
    this.#path = path;
    await syncFolder(dirname(path));
  }

  /** Writes zeros over its text and keeps its space. @throws the file system's error */
  async erase(): Promise<void> {
    await writeAt(this.#file, Buffer.alloc(this.bytes), 0);
    await this.#file.datasync();
    this.bytes = 0;
  }

  /** Marks the file as in use, so that no other process takes it over. Returns whether it is still there. */
  async touch(): Promise<boolean> {
    const now = new Date();
    await utimes(this.#path, now, now).catch(() => {});
    return this.#hasItsName();
  }

  /** Closes the file and keeps it. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }

  /** Removes the file, and closes it. One that was taken over has another name, and stays. */
  async remove(): Promise<void> {
    await rm(this.#path, { force: true }).catch(() => {});
    await this.close();
  }

  async #hasItsName(): Promise<boolean> {
    try {
      const [named, ours] = await Promise.all([
        stat(this.#path, { bigint: true }),
        this.#file.stat({ bigint: true }),
      ]);
      return named.ino === ours.ino && named.dev === ours.dev;
    } catch {
      return false;
    }
  }
}

async function writeAt(file: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, position + done);
    done += bytesWritten;
  }
}

/** What every journal knows of its entries. Entries are JSON. */
export interface Identified {
  /** Unique among the entries that the database does not have yet. */
  readonly id: string;
}

/** A settlement as the journal keeps it. */
export interface JournalEntry extends Identified {
  readonly accountId: string;
  /** Nano-USD as decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/** The content of a journal file. */
interface JournalText<Entry extends Identified> {
  /** In the order of writing. */
  readonly entries: readonly Entry[];
  /** Complete lines with a wrong checksum, or of a later version. An unfinished last line does not count: its writer
   * never reported it as durable. */
  readonly damagedLines: number;
}

/** Marks this format of a line. Another format takes another mark. */
const form = "uas1";

const newline = 0x0a;

/** The line of an entry: format mark, CRC-32 of the JSON in hexadecimal digits, JSON. */
export function encodeEntry(entry: Identified): string {
  const json = JSON.stringify(entry);
  return `${form} ${checksum(json)} ${json}\n`;
}

/**
 * Decodes a file, also a damaged one. JSON has no line breaks of its own, so a damaged line affects no other: a file
 * that is cut anywhere yields the entries whose lines are complete. Zeros behind the text are space that was allocated.
 */
export function decodeJournal<Entry extends Identified = JournalEntry>(
  bytes: Buffer,
): JournalText<Entry> {
  const entries: Entry[] = [];
  let damagedLines = 0;
  let start = 0;
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
    const entry = decodeLine(bytes.toString("utf8", start, end));
    if (entry === undefined) damagedLines++;
    else entries.push(entry as Entry);
    start = end + 1;
  }
  return { entries, damagedLines };
}

function decodeLine(line: string): unknown {
  const [, written, json = ""] = /^uas1 ([0-9a-f]{8}) (.*)$/s.exec(line) ?? [];
  // A matching checksum means that encodeEntry wrote this JSON: its shape needs no check.
  return written === checksum(json) ? JSON.parse(json) : undefined;
}

function checksum(json: string): string {
  return crc32(json).toString(16).padStart(8, "0");
}
