/**
 * Memory of large bodies, freed as soon as it is no longer used. V8 would free it with its next
 * full collection, and each new body would get new pages from the system: a request of 1 MB then
 * takes 2.5 times the CPU (docs/adr/0002-memory-of-bodies.md).
 *
 * Freed memory is an `ArrayBuffer` of length 0, so a late reader finds no bytes. Therefore every
 * reader of a body after the end of its call must be counted by {@link useMemory}. If the count
 * never reaches 0, V8 frees the memory.
 */

/**
 * The shortest body that is counted, in bytes. A socket reports when the system has received all of
 * a body of this size.
 */
export const countedBytesMin = 64 * 1024;

/** Number of users by memory. */
const users = new WeakMap<ArrayBufferLike, number>();

/**
 * Counts the memory of a new body, with its call as the first user. Short bodies, and bodies in
 * shared memory, are not counted.
 */
export function countMemory(body: Uint8Array): void {
  const { buffer, byteLength } = body;
  if (byteLength >= countedBytesMin && byteLength === buffer.byteLength) users.set(buffer, 1);
}

/** Counts one more user of the memory of a body, or of a part of one. */
export function useMemory({ buffer }: Uint8Array): void {
  const count = users.get(buffer);
  if (count !== undefined) users.set(buffer, count + 1);
}

/** Counts one user less; frees the memory with the last one. */
export function leaveMemory({ buffer }: Uint8Array): void {
  const count = users.get(buffer);
  if (count === undefined) return;
  users.set(buffer, count - 1);
  if (count > 1) return;
  users.delete(buffer);
  freeMemory(buffer);
}

/** Frees memory at once. It must not be read afterwards. */
export function freeMemory(memory: ArrayBufferLike): void {
  (memory as ArrayBuffer).transfer(0);
}
