/** Call records on their way into the database: as columns, as `ledger_apply` reads them. */
import { arrayText, quotedText } from "./array-text.ts";
import { boundRow, cleanRow } from "./call-json.ts";
import type { CallRow } from "./call-row.ts";

/** A settlement that may bring a record. */
export interface Recorded {
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
    const kind = row === undefined ? 0 : placeOf(kinds, row);
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

/** How many kinds are looked at, the newest first. More than that are rarely met again, and one that comes twice does no
 * harm. */
const lookedAtMax = 8;

/** The place of a row's kind, counted from 1; a new one is added. */
function placeOf(kinds: CallRow[], row: CallRow): number {
  const least = Math.max(0, kinds.length - lookedAtMax);
  for (let place = kinds.length; place > least; place--) {
    const kind = kinds[place - 1];
    if (kind !== undefined && isSameKind(kind, row)) return place;
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
    a.attempts === b.attempts
  );
}

/** What JSON escapes with \\u is what PostgreSQL may refuse: nearly every batch has none. */
function kindsJson(kinds: readonly CallRow[]): string {
  const json = JSON.stringify(kinds.map(kindOnly));
  return json.includes("\\u") ? JSON.stringify(kinds.map(cleanRow).map(kindOnly)) : json;
}

function kindOnly(row: CallRow): Partial<CallRow> {
  const { key_id, model, vendor, path, stream, status, error_code, ending, usage_source } = row;
  const { price_version, dropped, discount_bp, charged, images, second_micros, attempts } = row;
  return {
    ...{ key_id, model, vendor, path, stream, status, error_code, ending, usage_source },
    ...{ price_version, dropped, discount_bp, charged, images, second_micros },
    ...(attempts && { attempts }),
  };
}
