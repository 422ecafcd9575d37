/** Comma separated values (RFC 4180), for spreadsheets. */

/** A file with a head line. */
export function csvOf(head: readonly string[], lines: readonly (readonly string[])[]): string {
  return [head, ...lines].map((cells) => `${cells.map(csvCell).join(",")}\r\n`).join("");
}

/** A cell. Texts that spreadsheets might take for a formula begin with an apostrophe. */
function csvCell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d)/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
