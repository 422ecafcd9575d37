/** Exports calls as CSV or JSON lines, in pieces that fit a stream. */
import { stringify } from "csv-stringify/sync";
import { CallEndingSchema, ExportFormat } from "../../../gen/uas/billing/v1/call_pb.ts";
import { exportRowsMax, pageSizeMax } from "../../core/limits.ts";
import { formatUsd } from "../../core/money.ts";
import { type Page, readPage } from "../../core/pagination.ts";
import { isUuid } from "../../core/uuid.ts";
import type { Queryable } from "../../db/pool/queryable.ts";
import type { StoredCallRow } from "../message.ts";
import { readCalls } from "./read.ts";
import type { CallQuery } from "./filter.ts";

/** A piece of a file. */
interface ExportPiece {
  readonly text: string;
  /** Where the next file begins, if the log has more calls than one has; else empty. */
  readonly nextPageToken: string;
}

/** The calls to export. */
interface ExportQuery {
  readonly query: CallQuery;
  readonly format: ExportFormat;
  /** Of the file before; empty for the first. */
  readonly pageToken: string;
  /** Whether the file is for operators, and says the vendor cost. Default: false. */
  readonly hasVendorCost?: boolean;
}

/**
 * Exports calls; without any call, CSV has its header line alone. @param signal ends the export
 * early
 */
export async function* exportCalls(
  pool: Queryable,
  { query, format, pageToken: first, hasVendorCost = false }: ExportQuery,
  signal: AbortSignal,
): AsyncGenerator<ExportPiece> {
  const names = hasVendorCost ? operatorColumns : columns;
  const write = (rows: readonly StoredCallRow[]): string =>
    format === ExportFormat.JSON ? jsonLines(rows, names) : csvLines(rows, names);
  let pageToken = first;
  let left = exportRowsMax;
  const head = format === ExportFormat.JSON ? "" : csv([names]);
  let page = await readCalls(pool, query, pageOf(pageToken, left));
  yield { text: head + write(page.calls), nextPageToken: "" };
  while (page.nextPageToken !== "" && !signal.aborted) {
    left -= page.calls.length;
    ({ nextPageToken: pageToken } = page);
    if (left === 0) {
      yield { text: "", nextPageToken: pageToken };
      return;
    }
    page = await readCalls(pool, query, pageOf(pageToken, left));
    if (page.calls.length > 0) yield { text: write(page.calls), nextPageToken: "" };
  }
}

function pageOf(pageToken: string, left: number): Page {
  return readPage({ pageSize: Math.min(pageSizeMax, left), pageToken }, { isKey: isUuid });
}

const endingNames = new Map(
  CallEndingSchema.values.map(({ number, name }) => [
    number,
    name.slice("CALL_ENDING_".length).toLowerCase(),
  ]),
);

/** A call with the column names of the command line. */
export function callLine(row: StoredCallRow) {
  return {
    startedAt: row.start_time.toISOString(),
    callId: row.id,
    requestId: row.request_id,
    accountId: row.account_id,
    keyId: row.key_id,
    model: row.model,
    vendor: row.vendor,
    path: row.path,
    stream: row.stream,
    status: row.status,
    errorCode: row.error_code,
    ending: endingNames.get(row.ending) ?? "",
    inputTokens: row.input_tokens,
    cachedInputTokens: row.cached_input_tokens,
    cacheWriteTokens: row.cache_write_tokens,
    outputTokens: row.output_tokens,
    reasoningTokens: row.reasoning_tokens,
    images: row.images ?? 0,
    seconds: Number(row.second_micros ?? 0) / 1_000_000,
    cost: formatUsd(BigInt(row.cost)),
    currency: "USD",
    priceVersion: row.price_version,
    durationMs: row.duration_ms,
    firstByteMs: row.first_byte_ms,
  };
}

const columns: readonly (keyof ReturnType<typeof callLine>)[] = [
  "startedAt",
  "callId",
  "requestId",
  "accountId",
  "keyId",
  "model",
  "vendor",
  "path",
  "stream",
  "status",
  "errorCode",
  "ending",
  "inputTokens",
  "cachedInputTokens",
  "cacheWriteTokens",
  "outputTokens",
  "reasoningTokens",
  "images",
  "seconds",
  "cost",
  "currency",
  "priceVersion",
  "durationMs",
  "firstByteMs",
];

const operatorColumns = [...columns, "vendorCost"] as const;

type Columns = readonly (keyof ReturnType<typeof operatorLine>)[];

/** The line of a customer's export, with the vendor cost. */
function operatorLine(row: StoredCallRow) {
  return { ...callLine(row), vendorCost: vendorCostOf(row) };
}

/** The vendor cost in USD. Null if no cost is configured. */
export function vendorCostOf({ vendor_cost: cost }: StoredCallRow): string | null {
  return cost ? formatUsd(BigInt(cost)) : null;
}

function csvLines(rows: readonly StoredCallRow[], names: Columns): string {
  return csv(
    rows.map((row) => {
      const cells = operatorLine(row);
      return names.map((name) => cells[name]);
    }),
  );
}

function csv(rows: readonly (readonly unknown[])[]): string {
  const cast = { boolean: String };
  return stringify(
    rows.map((cells) => [...cells]),
    { escape_formulas: true, record_delimiter: "windows", cast },
  );
}

function jsonLines(rows: readonly StoredCallRow[], names: Columns): string {
  return rows.map((row) => `${JSON.stringify(operatorLine(row), [...names])}\n`).join("");
}
