/** Encodes call records for the database: as columns or JSON, with bounded texts that PostgreSQL accepts. */
import type { CallRow } from "./call-row.ts";

/** A settlement that may bring a record. */
interface Recorded {
  readonly record: CallRow | undefined;
}

/** How many parameters {@link callColumns} gives. */
export const callColumnsCount = 13;

const none: readonly null[] = Array.from({ length: callColumnsCount }, () => null);

/**
 * The kinds of calls as JSON, which kind each settlement's record is, then what each has of its own: two texts, and
 * numbers. Most calls of an account differ in these only, and what comes as an array is read in a third of the time
 * of JSON.
 */
export function callColumns(settles: readonly Recorded[]): readonly (string | null)[] {
  const kinds: CallRow[] = [];
  const rows: (CallRow | undefined)[] = [];
  let kindOf = "{";
  let isPlural = false;
  for (const { record } of settles) {
    const row = record && boundRow(record);
    rows.push(row);
    const kind = row === undefined ? 0 : kindNumber(kinds, row);
    if (kind !== 1) isPlural = true;
    kindOf += kindOf.length === 1 ? kind : `,${kind}`;
  }
  if (kinds.length === 0) return none;
  return [
    kindsJson(kinds),
    isPlural ? `${kindOf}}` : null,
    arrayText(rows, (row) => quotedText(row?.request_id ?? "")),
    arrayText(rows, (row) => quotedText(row?.upstream_request_id ?? "")),
    numbers(rows, (row) => row.input_tokens),
    numbers(rows, (row) => row.cached_input_tokens),
    numbers(rows, (row) => row.cache_write_tokens),
    numbers(rows, (row) => row.output_tokens),
    numbers(rows, (row) => row.reasoning_tokens),
    arrayText(rows, (row) => row?.held ?? "0"),
    numbers(rows, (row) => row.duration_ms),
    numbers(rows, (row) => row.first_byte_ms),
    arrayText(rows, (row) => (row === undefined ? "NULL" : `"${row.start_time}"`)),
  ];
}

/** Null where all are 0. */
function numbers(
  rows: readonly (CallRow | undefined)[],
  pick: (row: CallRow) => number,
): string | null {
  let hasAny = false;
  let array = "{";
  for (const row of rows) {
    const value = row === undefined ? 0 : pick(row);
    if (value !== 0) hasAny = true;
    array += array.length === 1 ? value : `,${value}`;
  }
  return hasAny ? `${array}}` : null;
}

/** How many kinds a row is compared with, the newest first. Older kinds rarely come again, and listing one twice does no
 * harm. */
const comparedMax = 8;

/** The number of a row's kind, counted from 1; a new kind is added. */
function kindNumber(kinds: CallRow[], row: CallRow): number {
  const last = Math.max(0, kinds.length - comparedMax);
  for (let number = kinds.length; number > last; number--) {
    const kind = kinds[number - 1];
    if (kind !== undefined && isSameKind(kind, row)) return number;
  }
  return kinds.push(row);
}

function isSameKind(a: CallRow, b: CallRow): boolean {
  return (
    a.key_id === b.key_id &&
    a.model === b.model &&
    a.vendor === b.vendor &&
    a.path === b.path &&
    a.stream === b.stream &&
    a.status === b.status &&
    a.error_code === b.error_code &&
    a.ending === b.ending &&
    a.usage_source === b.usage_source &&
    a.price_version === b.price_version &&
    a.dropped === b.dropped &&
    a.discount_bp === b.discount_bp &&
    a.charged === b.charged &&
    a.images === b.images &&
    a.second_micros === b.second_micros &&
    a.attempts === b.attempts &&
    a.units === b.units
  );
}

/** JSON escapes with \\u exactly what PostgreSQL may refuse. Nearly every batch has none and is written once. */
function kindsJson(kinds: readonly CallRow[]): string {
  const json = JSON.stringify(kinds.map(kindOnly));
  return json.includes("\\u") ? JSON.stringify(kinds.map(cleanRow).map(kindOnly)) : json;
}

function kindOnly(row: CallRow): Partial<CallRow> {
  const { key_id, model, vendor, path, stream, status, error_code, ending, usage_source } = row;
  const { price_version, dropped, discount_bp, charged, images, second_micros, attempts } = row;
  const { units } = row;
  return {
    ...{ key_id, model, vendor, path, stream, status, error_code, ending, usage_source },
    ...{ price_version, dropped, discount_bp, charged, images, second_micros },
    ...(attempts && { attempts }),
    ...(units && { units }),
  };
}

/** The longest text of a call record in characters, as the contract says of the model. */
const callTextCharsMax = 256;

/**
 * Writes rows as the JSON array that `json_populate_recordset(null::call, …)` reads. Texts that come from
 * outside are cut; NUL and lone surrogates, which PostgreSQL refuses, become U+FFFD.
 */
export function callsJson(rows: readonly CallRow[]): string {
  const json = JSON.stringify(rows.map(boundRow));
  // JSON.stringify escapes with \u exactly what PostgreSQL may refuse (and other control characters):
  // nearly every batch has none, and one search is cheaper than a check of every text.
  return json.includes("\\u") ? JSON.stringify(rows.map(boundRow).map(cleanRow)) : json;
}

/** An extension of a hold, with the cost of its call so far where it brings a checkpoint. */
interface ExtensionCheckpoint {
  /** The id of the hold. */
  readonly id: string;
  readonly checkpoint: { readonly cost: string; readonly record: CallRow | undefined } | undefined;
}

/** Writes the checkpoints of extensions as `ledger_extend` reads them; null where none brings one. */
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

/** The row with its untrusted texts cut. The same object where they are plain: copying all members costs more than the
 * checks. */
function boundRow(row: CallRow): CallRow {
  if (untrustedTexts.every((name) => isPlain(row[name] ?? ""))) return row;
  const bound = { ...row };
  for (const name of untrustedTexts) bound[name] = callText(row[name] ?? "");
  return { ...bound, dropped: row.dropped && bound.dropped };
}

/** Cuts a client's or vendor's text for a record, and replaces control characters, which a terminal might obey. */
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

/** A PostgreSQL array literal, written by hand: the driver takes 3 times as long. @param text gives digits, an id, `NULL`,
 * or a text by {@link quotedText} */
export function arrayText<T>(items: readonly T[], text: (item: T) => string): string {
  let array = "{";
  for (const item of items) array += array.length === 1 ? text(item) : `,${text(item)}`;
  return `${array}}`;
}

/** Quotes a member of an array of texts: clients choose any visible characters. */
export function quotedText(text: string): string {
  return /["\\]/.test(text) ? `"${text.replaceAll(/["\\]/g, "\\$&")}"` : `"${text}"`;
}
