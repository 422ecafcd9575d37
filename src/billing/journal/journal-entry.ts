/** An entry of the settlement journal, and its line in the file. */
import { crc32 } from "node:zlib";
import type { CallRow } from "../calls/call-row.ts";

/** A settlement as the journal keeps it. */
export interface JournalEntry {
  /** The id of the hold: unique among the entries that the database does not have yet. */
  readonly id: string;
  readonly accountId: string;
  /** Nano-USD as decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/** The content of a journal file. */
interface JournalText {
  /** In the order of writing. */
  readonly entries: readonly JournalEntry[];
  /**
   * Complete lines with a wrong checksum, or of a later version. An unfinished last line does not
   * count: its writer never reported it as durable.
   */
  readonly damagedLines: number;
}

/** Marks this format of a line. Another format takes another mark. */
const form = "uas1";

const newline = 0x0a;

/** The line of an entry: format mark, CRC-32 of the JSON in hexadecimal digits, JSON. */
export function encodeEntry(entry: JournalEntry): string {
  const json = JSON.stringify(entry);
  return `${form} ${checksum(json)} ${json}\n`;
}

/**
 * Decodes a file, also a damaged one. JSON contains no line breaks, so a damaged line affects no
 * other: a file that is cut anywhere yields the entries whose lines are complete.
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
  // A matching checksum means that encodeEntry wrote this JSON: its shape needs no check.
  return written === checksum(json) ? (JSON.parse(json) as JournalEntry) : undefined;
}

function checksum(json: string): string {
  return crc32(json).toString(16).padStart(8, "0");
}
