/** Tables in Markdown. */

/**
 * A table. Line breaks and vertical bars in cells are replaced, because they would end the cell.
 */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => "---"), ...rows].map(
    (cells) => `| ${cells.map(cell).join(" | ")} |`,
  );
  return lines.join("\n");
}

function cell(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").trim();
}

/** The text as code. */
export function code(text: string): string {
  return `\`${text}\``;
}
