/** Call records on their way into the database: bounded, and in a JSON that PostgreSQL accepts. */
import type { CallRow } from "./call-row.ts";

/** The longest text of a call record in characters, as the contract says of the model. */
export const callTextCharsMax = 256;

/**
 * Writes rows as the JSON array that `json_populate_recordset(null::call, …)` reads. Texts that come from
 * outside are cut; NUL and lone surrogates, which PostgreSQL refuses, become U+FFFD.
 */
export function callsJson(rows: readonly CallRow[]): string {
  const json = JSON.stringify(rows.map(boundRow));
  // JSON.stringify escapes with \u exactly what PostgreSQL may refuse (and other control characters):
  // nearly every batch has none, and one search is cheaper than a look at every text.
  return json.includes("\\u") ? JSON.stringify(rows.map(boundRow).map(cleanRow)) : json;
}

/** The row itself where it is short enough: a copy of 24 members for nothing costs more than the tests. */
function boundRow(row: CallRow): CallRow {
  const fits =
    row.model.length <= callTextCharsMax &&
    row.request_id.length <= callTextCharsMax &&
    row.path.length <= callTextCharsMax &&
    row.upstream_request_id.length <= callTextCharsMax;
  if (fits) return row;
  const cut = (text: string): string => text.slice(0, callTextCharsMax);
  return {
    ...row,
    model: cut(row.model),
    request_id: cut(row.request_id),
    path: cut(row.path),
    upstream_request_id: cut(row.upstream_request_id),
  };
}

function cleanRow(row: CallRow): CallRow {
  const entries = Object.entries(row).map(([key, value]: [string, unknown]) => [
    key,
    typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value,
  ]);
  return Object.fromEntries(entries) as CallRow;
}
