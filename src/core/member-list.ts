/** Names of members in one line, for headers and messages. */

/** Character limits of a list of members and of one name in it: proxies refuse long headers. */
const listCharsMax = 1024;
const nameCharsMax = 128;

/**
 * Joins the names of members to one line for a header or a message. Clients choose some of the
 * names: a character that no header may contain becomes a question mark, and names beyond the limit
 * are replaced by three dots.
 */
export function memberList(names: readonly string[]): string {
  let list = "";
  for (const [at, name] of names.entries()) {
    const next = at === 0 ? memberName(name) : `${list}, ${memberName(name)}`;
    if (next.length > listCharsMax - ", ...".length) return `${list}, ...`;
    list = next;
  }
  return list;
}

/** Formats one name for a {@link memberList}. */
export function memberName(name: string): string {
  const cut = name.length <= nameCharsMax ? name : `${name.slice(0, nameCharsMax - 3)}...`;
  return cut.replaceAll(/[^\x21-\x2b\x2d-\x7e]/g, "?");
}
