/**
 * Adds the items of one list to the end of another. Unlike `push(...items)`, whose arguments are on
 * the stack, it accepts any number: a request of 20 MiB may have a million.
 */
export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}
