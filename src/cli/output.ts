/** Formats what commands print for people. */

/**
 * Formats a table with a header row and aligned columns. If it is wider than the terminal, texts
 * are wrapped between their words. If that is not enough, each row becomes a block of lines, as
 * psql does: nothing is cut, because ids are copied from here.
 *
 * @param width columns of the terminal. Default: unlimited if the output is not a terminal
 */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  width = process.stdout.isTTY ? process.stdout.columns : Infinity,
): string {
  const all = [head, ...rows].map((row) => row.map(printable));
  const widths = fittedWidths(all, width);
  if (widths === undefined) return blocks(head, rows);
  return all.flatMap((row) => wrappedRow(row, widths)).join("\n");
}

/** Spaces between two columns. */
const gap = "  ";

/**
 * The widths of the columns in a table of at most this width. Undefined if its longest words do not
 * fit.
 */
function fittedWidths(rows: readonly (readonly string[])[], width: number) {
  const columns = (rows[0] ?? []).map((_, column) => rows.map((row) => row[column] ?? ""));
  const widths = columns.map((texts) => Math.max(...texts.map((text) => text.length)));
  const least = columns.map((texts) =>
    Math.max(...texts.flatMap((text) => text.split(" ").map((word) => word.length))),
  );
  let excess = sum(widths) + gap.length * (widths.length - 1) - width;
  while (excess > 0) {
    const room = widths.map((each, column) => each - (least[column] ?? 0));
    const widest = room.indexOf(Math.max(...room));
    const taken = Math.min(excess, room[widest] ?? 0);
    if (taken === 0) return undefined;
    widths[widest] = (widths[widest] ?? 0) - taken;
    excess -= taken;
  }
  return widths;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** A row of a table, on as many lines as its longest cell needs. */
function wrappedRow(row: readonly string[], widths: readonly number[]): readonly string[] {
  const cells = row.map((text, column) => wrapped(text, widths[column] ?? 0));
  const lines = Math.max(...cells.map((each) => each.length));
  return Array.from({ length: lines }, (_, line) =>
    cells
      .map((each, column) => (each[line] ?? "").padEnd(widths[column] ?? 0))
      .join(gap)
      .trimEnd(),
  );
}

/** Lines of at most this width, if no word is longer. */
function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.length <= width ? [text] : text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else {
      line = line === "" ? word : `${line} ${word}`;
    }
  }
  return [...lines, line];
}

/** A block of lines for each row. */
function blocks(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return rows
    .map((row) => facts(Object.fromEntries(head.map((name, column) => [name, row[column]]))))
    .join("\n\n");
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
export function printable(text: string): string {
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
