/** Writes results for people: tables and lists of facts. */

/** A table with a head, columns aligned. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map(printable));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((text, column) => text.padEnd(widths[column] ?? 0)).join("  ");
  return all.map((row) => line(row).trimEnd()).join("\n");
}

/** One fact a line, values aligned. `null` is written as a dash. */
export function facts(values: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(values).map((name) => name.length));
  return Object.entries(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`)
    .join("\n");
}

/** A value in a table. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  return printable(typeof value === "string" ? value : JSON.stringify(value));
}

/** Names come from users: a control character in one could steer the operator's terminal. */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
}

/** Reads lists of the contract page by page. */

/** The largest page that the contract gives. */
const pageSizeMax = 1_000;

/** One page to ask for. */
interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** One page of a list. */
interface Page<Item> {
  readonly items: readonly Item[];
  /** Empty: this is the last. */
  readonly nextPageToken: string;
}

/** The first `limit` items of a list; `Infinity` for all. */
export async function everyPage<Item>(
  limit: number,
  read: (request: PageRequest) => Promise<Page<Item>>,
): Promise<readonly Item[]> {
  const found: Item[] = [];
  let pageToken = "";
  do {
    const pageSize = Math.min(pageSizeMax, limit - found.length);
    const page = await read({ pageSize, pageToken });
    found.push(...page.items.slice(0, pageSize));
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && found.length < limit);
  return found;
}
