/** Values that are computed from a source which is exchanged now and then. */
import { isDeepStrictEqual } from "node:util";

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

/** A client that is opened from settings. */
interface Closable {
  close(): unknown;
}

/** A client of settings that are exchanged now and then. */
export interface LiveClient<Client> {
  /** The client of the current settings; undefined if there are none. */
  current(this: void): Client | undefined;
  /** Closes all clients: work in progress may use an earlier one until then. */
  close(): Promise<void>;
}

/** Opens a client when it is first needed, and another one when its settings differ. */
export function liveClient<Settings extends object, Client extends Closable>(
  settings: () => Settings | undefined,
  open: (settings: Settings) => Client,
): LiveClient<Client> {
  const all: Client[] = [];
  let last: { readonly settings: Settings; readonly client: Client } | undefined;
  return {
    current() {
      const now = settings();
      if (now === undefined) return undefined;
      if (last === undefined || !isDeepStrictEqual(last.settings, now)) {
        last = { settings: now, client: open(now) };
        all.push(last.client);
      }
      return last.client;
    },
    async close() {
      await Promise.all(all.map(async (client) => client.close()));
    },
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
