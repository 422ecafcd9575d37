/** Formats a table with a header row and aligned columns. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows].map((row) => row.map(printable));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row.map((text, column) => text.padEnd(widths[column] ?? 0)).join("  ");
  return all.map((row) => line(row).trimEnd()).join("\n");
}

/** Formats facts, one per line, with aligned values. `null` is written as a dash. */
export function facts(values: Readonly<Record<string, unknown>>): string {
  const width = Math.max(...Object.keys(values).map((name) => name.length));
  return Object.entries(values)
    .map(([name, value]) => `${name.padEnd(width)}  ${cell(value)}`)
    .join("\n");
}

/** Formats a value for a table. */
export function cell(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  return printable(typeof value === "string" ? value : JSON.stringify(value));
}

/**
 * Removes control characters: names come from users, and one could control the operator's terminal.
 */
function printable(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
}

/** The contract's largest page. */
const pageSizeMax = 1_000;

/** A page to request. */
interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

/** A page of a list. */
interface Page<Item> {
  readonly items: readonly Item[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
}

/** Reads the first `limit` items of a list, page by page; `Infinity` reads all. */
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
