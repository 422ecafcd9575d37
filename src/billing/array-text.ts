/** Arrays as PostgreSQL reads them, written by hand: the driver takes 3 times as long. */

/** An array of what `text` gives of each item: digits, ids, `NULL`, or texts by {@link quotedText}. */
export function arrayText<T>(items: readonly T[], text: (item: T) => string): string {
  let array = "{";
  for (const item of items) array += array.length === 1 ? text(item) : `,${text(item)}`;
  return `${array}}`;
}

/** A member of an array of texts. What clients choose may be anything that can be seen. */
export function quotedText(text: string): string {
  return /["\\]/.test(text) ? `"${text.replaceAll(/["\\]/g, "\\$&")}"` : `"${text}"`;
}
