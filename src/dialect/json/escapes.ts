/** Escapes in JSON behind which a name can hide from a search of the bytes. */

/**
 * Whether a body writes ASCII characters as `\\u00..`, as no client needs to: `"pre\\u0076ious_response_id"`
 * means what it means without. Where it does, only parsing tells what it says.
 */
export function hasEscapedAscii(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(escape); at >= 0; at = bytes.indexOf(escape, at + 1)) {
    const digit = bytes[at + escape.length] ?? 0;
    // 2 to 7: what can stand in a name. Control characters, and what is beyond ASCII, cannot.
    if (digit >= 0x32 && digit <= 0x37) return true;
  }
  return false;
}

const escape = "\\u00";

/** A part of an address without escapes; one that has wrong ones as it is. */
export function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
