/**
 * Encodes call records for the database: as columns or JSON, with bounded texts that PostgreSQL
 * accepts.
 */
import type { EncodeArray } from "../../db/array.ts";
import type { CallRow } from "./call-row.ts";
import { callKindColumns } from "./entity.ts";

/** A settlement that may bring a record. */
interface Recorded {
  /** Nano-USD in decimal digits. */
  readonly cost: string;
  readonly record: CallRow | undefined;
}

/** Number of parameters of {@link callColumns}. */
export const callColumnsCount = 14;

const none: readonly null[] = Array.from({ length: callColumnsCount }, () => null);

/** Records with the same common columns, which began in the same hour, and what they add up to. */
interface Kind {
  readonly row: CallRow;
  /** Hours since 1970. */
  readonly hour: number;
  calls: number;
  input: number;
  cachedInput: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
  cost: bigint;
  vendorCost: bigint;
}

/**
 * Encodes call records: the kinds of calls as JSON, the kind of each settlement's record, the sums
 * of each kind, then the individual values of each record: two texts, and numbers. Most calls of an
 * account differ only in these. Arrays are read in a third of the time of JSON.
 */
export function callColumns(
  settles: readonly Recorded[],
  encode: EncodeArray,
): readonly (string | Buffer | null)[] {
  const kinds: Kind[] = [];
  const rows: (CallRow | undefined)[] = [];
  let kindOf = "{";
  let isPlural = false;
  for (const { record, cost } of settles) {
    const row = record && boundRow(record);
    rows.push(row);
    const kind = row === undefined ? 0 : addToKind(kinds, row, cost);
    if (kind !== 1) isPlural = true;
    kindOf += kindOf.length === 1 ? kind : `,${kind}`;
  }
  if (kinds.length === 0) return none;
  /** Null if all are 0. */
  const numbers = (pick: (row: CallRow) => number): string | Buffer | null =>
    rows.some((row) => row !== undefined && pick(row) !== 0)
      ? encode("integer", rows, (row) => (row === undefined ? 0 : pick(row)))
      : null;
  return [
    kindsJson(kinds.map(({ row }) => row)),
    isPlural ? `${kindOf}}` : null,
    sumsText(kinds),
    encode("text", rows, (row) => row?.request_id ?? ""),
    encode("text", rows, (row) => row?.upstream_request_id ?? ""),
    numbers((row) => row.input_tokens),
    numbers((row) => row.cached_input_tokens),
    numbers((row) => row.cache_write_tokens),
    numbers((row) => row.output_tokens),
    numbers((row) => row.reasoning_tokens),
    encode("bigint", rows, (row) => row?.held ?? 0),
    numbers((row) => row.duration_ms),
    numbers((row) => row.first_byte_ms),
    encode("timestamptz", rows, (row) => row?.start_time),
  ];
}

/**
 * Maximum number of kinds that a row is compared with, the newest first. Older kinds rarely return,
 * and a duplicate is harmless.
 */
const comparedMax = 8;

/** Adds a record to its kind. Returns the kind's number, counted from 1. */
function addToKind(kinds: Kind[], row: CallRow, cost: string): number {
  const number = kindNumber(kinds, row, hourOf(row.id));
  const kind = kinds[number - 1];
  if (kind === undefined) return number;
  kind.calls++;
  kind.input += row.input_tokens;
  kind.cachedInput += row.cached_input_tokens;
  kind.cacheWrite += row.cache_write_tokens;
  kind.output += row.output_tokens;
  kind.reasoning += row.reasoning_tokens;
  kind.cost += BigInt(cost);
  if (row.vendor_cost) kind.vendorCost += BigInt(row.vendor_cost);
  return number;
}

/** The number of a row's kind, counted from 1; a new kind is added. */
function kindNumber(kinds: Kind[], row: CallRow, hour: number): number {
  const last = Math.max(0, kinds.length - comparedMax);
  for (let number = kinds.length; number > last; number--) {
    const kind = kinds[number - 1];
    if (kind !== undefined && kind.hour === hour && isSameKind(kind.row, row)) return number;
  }
  return kinds.push(newKind(row, hour));
}

function newKind(row: CallRow, hour: number): Kind {
  const tokens = { input: 0, cachedInput: 0, cacheWrite: 0, output: 0, reasoning: 0 };
  return { row, hour, calls: 0, ...tokens, cost: 0n, vendorCost: 0n };
}

const hourMs = 60 * 60 * 1_000;

/** The hour in which a UUIDv7 was made, counted from 1970. */
function hourOf(id: string): number {
  return Math.floor(Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) / hourMs);
}

/** The sums of the kinds as ledger_usage reads them. */
function sumsText(kinds: readonly Kind[]): string {
  const sums = kinds.map(
    ({ hour, calls, input, cachedInput, cacheWrite, output, reasoning, cost, vendorCost }) =>
      `${hour},${calls},${input},${cachedInput},${cacheWrite},${output},${reasoning},${cost},${vendorCost}`,
  );
  return `{${sums.join(",")}}`;
}

const kindColumns = callKindColumns as readonly (keyof CallRow)[];

function isSameKind(a: CallRow, b: CallRow): boolean {
  for (const name of kindColumns) if (a[name] !== b[name]) return false;
  return true;
}

/**
 * A single kind as an object, several as an array. JSON escapes with \\u exactly what PostgreSQL
 * may refuse. Nearly every batch has none and is written once.
 */
function kindsJson(kinds: readonly CallRow[]): string {
  const write = (rows: readonly CallRow[]): string => {
    const only = rows.map(kindOnly);
    return JSON.stringify(only.length === 1 ? only[0] : only);
  };
  const json = write(kinds);
  return json.includes("\\u") ? write(kinds.map(cleanRow)) : json;
}

/** The common columns of a record; those that are null are left out. */
function kindOnly(row: CallRow): Partial<CallRow> {
  const given = kindColumns.flatMap((name) => (row[name] == null ? [] : [[name, row[name]]]));
  return Object.fromEntries(given) as Partial<CallRow>;
}

/** The longest text of a call record in characters, as the contract says of the model. */
const callTextCharsMax = 256;

/**
 * Writes rows as the JSON array that `json_populate_recordset(null::call, …)` reads. Texts that
 * come from outside are cut; NUL and lone surrogates, which PostgreSQL refuses, become U+FFFD.
 */
export function callsJson(rows: readonly CallRow[]): string {
  const json = JSON.stringify(rows.map(boundRow));
  // JSON.stringify escapes with \u exactly what PostgreSQL may refuse (and other control
  // characters): nearly every batch has none, and one search is cheaper than a check of every text.
  return json.includes("\\u") ? JSON.stringify(rows.map(boundRow).map(cleanRow)) : json;
}

/** An extension of a hold, with the cost of its call so far if it brings a checkpoint. */
interface ExtensionCheckpoint {
  /** The id of the hold. */
  readonly id: string;
  readonly checkpoint: { readonly cost: string; readonly record: CallRow | undefined } | undefined;
}

/** Writes the checkpoints of extensions as `ledger_extend` reads them; null if none brings one. */
export function checkpointsJson(grown: readonly ExtensionCheckpoint[]): string | null {
  const write = (clean: (row: CallRow) => CallRow): string | undefined => {
    const checkpoints: object[] = [];
    for (const { id, checkpoint } of grown) {
      if (checkpoint === undefined) continue;
      const { cost, record } = checkpoint;
      checkpoints.push({ id, cost, record: record && clean(boundRow(record)) });
    }
    return checkpoints.length > 0 ? JSON.stringify(checkpoints) : undefined;
  };
  const json = write((row) => row);
  return json?.includes("\\u") ? (write(cleanRow) ?? null) : (json ?? null);
}

/** Columns whose texts clients or vendors have written. */
const untrustedTexts = ["model", "request_id", "path", "upstream_request_id", "dropped"] as const;

/**
 * The row with its untrusted texts cut. The same object if they are plain: copying all members
 * costs more than the checks.
 */
function boundRow(row: CallRow): CallRow {
  if (untrustedTexts.every((name) => isPlain(row[name] ?? ""))) return row;
  const bound = { ...row };
  for (const name of untrustedTexts) {
    const { [name]: text } = row;
    if (text != null) bound[name] = callText(text);
  }
  return bound;
}

/**
 * Cuts a client's or vendor's text for a record, and replaces control characters, which a terminal
 * might obey.
 */
export function callText(text: string): string {
  if (isPlain(text)) return text;
  return text
    .slice(0, callTextCharsMax)
    .toWellFormed()
    .replace(/\p{Cc}/gu, "\ufffd");
}

function isPlain(text: string): boolean {
  return text.length <= callTextCharsMax && /^[\x20-\x7e]*$/.test(text);
}

/** The row without NUL and lone surrogates, which PostgreSQL refuses. */
function cleanRow(row: CallRow): CallRow {
  const entries = Object.entries(row).map(([key, value]: [string, unknown]) => [
    key,
    typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value,
  ]);
  return Object.fromEntries(entries) as CallRow;
}
