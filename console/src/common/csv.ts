/** Comma separated values (RFC 4180), for spreadsheets. */

/** A CSV file with a header line. */
export function csvOf(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, ...lines].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");
}

/** One cell. A text that a spreadsheet might evaluate as a formula gets an apostrophe in front. */
function csvCell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
