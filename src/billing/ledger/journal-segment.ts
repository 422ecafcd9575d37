/** One file of the settlement journal, as the process that writes it sees it. */
import { constants } from "node:fs";
import { mkdir, open, rm, stat, utimes, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import type { CallRow } from "../calls/call-row.ts";

/** How the names of files end that may hold settlements. */
export const segmentSuffix = ".journal";

/** A file that is appended to. */
export class Segment {
  readonly path: string;
  /** How many of its settlements the database does not have yet. */
  waiting = 0;
  /** Its length as far as it is durable. */
  bytes = 0;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** Makes it, and its folder, readable by this user only; its name is durable then. @throws where it cannot be made */
  static async create(path: string): Promise<Segment> {
    const folder = dirname(path);
    if ((await mkdir(folder, { recursive: true, mode: 0o700 })) !== undefined) {
      await syncFolder(dirname(folder));
    }
    const file = await open(path, "ax", 0o600);
    try {
      await syncFolder(folder);
    } catch (error) {
      await file.close().catch(() => {});
      await rm(path, { force: true });
      throw error;
    }
    return new Segment(path, file);
  }

  /**
   * Adds text and makes it durable.
   *
   * @returns whether whoever takes this file over will read the text. False: somebody did so already, perhaps
   * before the text was written; it must be written elsewhere.
   * @throws where it cannot be written; the file then ends as before, or with an unfinished line, and must not
   * be appended to any more: what a failed fsync has left of a file is anybody's guess.
   */
  async append(text: string, onWritten: () => void): Promise<boolean> {
    try {
      await this.#file.appendFile(text);
      onWritten();
      await this.#file.datasync();
    } catch (error) {
      await this.#file.truncate(this.bytes).catch(() => {});
      throw error;
    }
    // One who takes over renames first and reads then: what was durable before the name was looked at is read.
    if (!(await this.#hasItsName())) return false;
    this.bytes += Buffer.byteLength(text);
    return true;
  }

  /** Says that somebody uses it: see {@link JournalReplay}. */
  async touch(): Promise<void> {
    const now = new Date();
    await utimes(this.path, now, now).catch(() => {});
  }

  /** Closes it; what is in it stays. */
  async close(): Promise<void> {
    await this.#file.close().catch(() => {});
  }

  /** Removes the file. One that was taken over has another name by now, and stays. */
  async remove(): Promise<void> {
    await rm(this.path, { force: true }).catch(() => {});
  }

  async #hasItsName(): Promise<boolean> {
    try {
      const [named, ours] = await Promise.all([
        stat(this.path, { bigint: true }),
        this.#file.stat({ bigint: true }),
      ]);
      return named.ino === ours.ino && named.dev === ours.dev;
    } catch {
      return false;
    }
  }
}

/** Makes the names in a folder durable. Windows has no such call for folders. */
async function syncFolder(folder: string): Promise<void> {
  if (process.platform === "win32") return;
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/* The text of a settlement journal: one settlement a line, each with its checksum. Pure. */

/** A settlement as the journal keeps it. */
export interface JournalEntry {
  /** The id of the hold. */
  readonly id: string;
  readonly accountId: string;
  /** Nano-USD as decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/** What a file of the journal says. */
interface JournalText {
  /** In the order in which they were written. */
  readonly entries: readonly JournalEntry[];
  /** Whole lines that are not as they were written, or of a later version. An unfinished last line is none of
   * them: whoever wrote it did not get to say that it was kept. */
  readonly damagedLines: number;
}

/** The mark of this form of a line. Another form takes another one. */
const form = "uas1";

const newline = 0x0a;

/** The line of an entry: form, checksum of the JSON in hexadecimal digits, JSON. */
export function encodeEntry(entry: JournalEntry): string {
  const json = JSON.stringify(entry);
  return `${form} ${checksum(json)} ${json}\n`;
}

/**
 * Reads a file, whatever became of it. JSON has no line breaks of its own, so that a damaged line spoils no
 * other: a file cut anywhere yields the entries whose lines are whole.
 */
export function decodeJournal(bytes: Buffer): JournalText {
  const entries: JournalEntry[] = [];
  let damagedLines = 0;
  let start = 0;
  for (let end = bytes.indexOf(newline); end >= 0; end = bytes.indexOf(newline, start)) {
    const entry = decodeLine(bytes.toString("utf8", start, end));
    if (entry === undefined) damagedLines++;
    else entries.push(entry);
    start = end + 1;
  }
  return { entries, damagedLines };
}

function decodeLine(line: string): JournalEntry | undefined {
  const [, written, json = ""] = /^uas1 ([0-9a-f]{8}) (.*)$/s.exec(line) ?? [];
  // What passes this is what encodeEntry was given: its form needs no second look.
  return written === checksum(json) ? (JSON.parse(json) as JournalEntry) : undefined;
}

function checksum(json: string): string {
  return crc32(json).toString(16).padStart(8, "0");
}
