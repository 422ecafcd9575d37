/** UUIDs as ids. */

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a text is a UUID as ours are written: lower case, with dashes. PostgreSQL takes other forms
 * too, and fails on the rest: check before asking it, so that a malformed id is "not found".
 */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}
