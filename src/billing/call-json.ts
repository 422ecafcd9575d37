/** Call records on their way into the database: bounded, and in a JSON that PostgreSQL accepts. */
import type { CallRow } from "./call-row.ts";

/** The longest text of a call record in characters, as the contract says of the model. */
const callTextCharsMax = 256;

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

/** What may bring a checkpoint: how far the call of a hold is. */
export interface Told {
  /** The id of the hold. */
  readonly id: string;
  readonly checkpoint: { readonly cost: string; readonly record: CallRow | undefined } | undefined;
}

/** Writes the checkpoints of extensions as `ledger_extend` reads them; null where none brings one. */
export function checkpointsJson(grown: readonly Told[]): string | null {
  const write = (clean: (row: CallRow) => CallRow): string | undefined => {
    const told: object[] = [];
    for (const { id, checkpoint } of grown) {
      if (checkpoint === undefined) continue;
      const { cost, record } = checkpoint;
      told.push({ id, cost, record: record && clean(boundRow(record)) });
    }
    return told.length > 0 ? JSON.stringify(told) : undefined;
  };
  const json = write((row) => row);
  return json?.includes("\\u") ? (write(cleanRow) ?? null) : (json ?? null);
}

/** Texts that clients or vendors have written. */
const foreignTexts = ["model", "request_id", "path", "upstream_request_id", "dropped"] as const;

/** The row with the texts that come from outside cut; itself where they are plain: a copy of all its members for nothing
 * costs more than the tests. */
export function boundRow(row: CallRow): CallRow {
  if (foreignTexts.every((name) => isPlain(row[name] ?? ""))) return row;
  const bound = { ...row };
  for (const name of foreignTexts) bound[name] = callText(row[name] ?? "");
  return { ...bound, dropped: row.dropped && bound.dropped };
}

/** A client's or vendor's text as a record has it: cut, and without control characters, which a terminal might
 * obey. */
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
export function cleanRow(row: CallRow): CallRow {
  const entries = Object.entries(row).map(([key, value]: [string, unknown]) => [
    key,
    typeof value === "string" ? value.toWellFormed().replaceAll("\0", "\ufffd") : value,
  ]);
  return Object.fromEntries(entries) as CallRow;
}
