/** The text of a settlement journal: one settlement a line, each with its checksum. Pure. */
import { crc32 } from "node:zlib";
import type { CallRow } from "./call-row.ts";

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
export interface JournalText {
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
