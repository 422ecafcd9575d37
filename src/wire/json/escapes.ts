/**
 * Whether a body escapes ASCII characters as `\\u00..`, which no client needs to do:
 * `"pre\\u0076ious_response_id"` hides a name from a search of the bytes. Such a body must be
 * parsed.
 */
export function hasEscapedAscii(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(escape); at >= 0; at = bytes.indexOf(escape, at + 1)) {
    const digit = bytes[at + escape.length] ?? 0;
    // 2 to 7: printable ASCII, which names may contain. Control characters and non-ASCII cannot
    // hide a name.
    if (digit >= 0x32 && digit <= 0x37) return true;
  }
  return false;
}

const escape = "\\u00";

/** Decodes percent escapes; returns text with invalid ones unchanged. */
export function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
