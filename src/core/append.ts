/**
 * Adds the items of one list to the end of another. Unlike `push(...items)`, whose arguments lie on the stack, it takes as many
 * as there are: a request of 20 MiB may have a million.
 */
export function append<Item>(list: Item[], items: Iterable<Item>): void {
  for (const item of items) list.push(item);
}
