/** UUIDs as ids. */
import { v7 } from "uuid";

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Whether a text is a UUID as ours are written: lower case, with dashes. PostgreSQL takes other forms
 * too, and fails on the rest: check before asking it, so that a malformed id is "not found".
 */
export function isUuid(text: string): boolean {
  return uuid.test(text);
}

/**
 * A new id: a UUIDv7 that is greater than all that this process has made before, so that rows ordered by id stand
 * in the order they came. Node's own orders those of one millisecond by chance, and a fast machine makes several.
 */
export function newId(): string {
  return v7();
}
