/** Values that are computed from a source which is exchanged now and then. */

/**
 * Returns a function for the value of the current source. It computes the value again only when the
 * source is another object.
 */
export function derived<Source extends object, Value>(
  source: () => Source,
  compute: (source: Source) => Value,
): () => Value {
  let last: { readonly source: Source; readonly value: Value } | undefined;
  return () => {
    const now = source();
    if (last?.source !== now) last = { source: now, value: compute(now) };
    return last.value;
  };
}

/** Gives a map other entries. Those who hold the map see all of them at once. */
export function refill<Key, Value>(
  map: Map<Key, Value>,
  entries: Iterable<readonly [Key, Value]>,
): void {
  const next = [...entries];
  map.clear();
  for (const [key, value] of next) map.set(key, value);
}
