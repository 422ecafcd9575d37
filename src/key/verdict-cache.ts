/** A cache of the results of key look-ups. */

/** A cached result for one digest. */
interface CachedResult<T> {
  readonly value: T;
  /** Expiry on the clock of the cache's user. */
  readonly untilMs: number;
  /**
   * The key id, by which {@link VerdictCache.forget} finds the entry; the account id works too.
   * Undefined if no id is known.
   */
  readonly keyId: string | undefined;
  readonly accountId: string | undefined;
  /** Its share of the cache's size. */
  readonly weight: number;
}

/** Entries by digest, and the digests by key id and account id, to find entries to remove. */
interface Generation<T> {
  readonly byDigest: Map<string, CachedResult<T>>;
  readonly digestByKeyId: Map<string, string>;
  readonly digestsByAccountId: Map<string, Set<string>>;
  weight: number;
}

/**
 * A fixed-size cache of key results in two generations. New and used entries are in the young
 * generation. When it reaches half of the cache's size it becomes the old one, and the previous old
 * one is dropped. So a hit is one look-up without writes (an LRU list would write at every hit),
 * and entries in use survive.
 */
export class VerdictCache<T> {
  readonly #weightMax: number;
  #young: Generation<T> = emptyGeneration();
  #old: Generation<T> = emptyGeneration();

  /** @param weightMax total weight of all entries */
  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  /** Number of entries; those carried over count twice. */
  get size(): number {
    return this.#young.byDigest.size + this.#old.byDigest.size;
  }

  /** The cached result for a digest, unless expired. */
  get(digest: string, nowMs: number): T | undefined {
    const young = this.#young.byDigest.get(digest);
    if (young !== undefined) return nowMs < young.untilMs ? young.value : undefined;
    const old = this.#old.byDigest.get(digest);
    if (old === undefined || nowMs >= old.untilMs) return undefined;
    this.set(digest, old);
    return old.value;
  }

  /** Stores a result, replacing an existing one. */
  set(digest: string, entry: CachedResult<T>): void {
    if (this.#young.weight + entry.weight > this.#weightMax / 2) {
      this.#old = this.#young;
      this.#young = emptyGeneration();
    }
    const young = this.#young;
    young.weight += entry.weight - (young.byDigest.get(digest)?.weight ?? 0);
    young.byDigest.set(digest, entry);
    if (entry.keyId !== undefined) young.digestByKeyId.set(entry.keyId, digest);
    if (entry.accountId === undefined) return;
    const ofAccount = young.digestsByAccountId.get(entry.accountId);
    if (ofAccount === undefined) young.digestsByAccountId.set(entry.accountId, new Set([digest]));
    else ofAccount.add(digest);
  }

  /** Forgets the results of a key, or of all keys of an account. */
  forget(id: string): void {
    for (const generation of [this.#young, this.#old]) {
      const digest = generation.digestByKeyId.get(id);
      if (digest !== undefined) drop(generation, digest);
      for (const each of generation.digestsByAccountId.get(id) ?? []) drop(generation, each);
    }
  }

  /** Forgets everything. */
  clear(): void {
    this.#young = emptyGeneration();
    this.#old = emptyGeneration();
  }
}

function drop<T>(generation: Generation<T>, digest: string): void {
  const { byDigest, digestByKeyId, digestsByAccountId } = generation;
  const entry = byDigest.get(digest);
  if (entry === undefined) return;
  byDigest.delete(digest);
  generation.weight -= entry.weight;
  if (entry.keyId !== undefined) digestByKeyId.delete(entry.keyId);
  if (entry.accountId === undefined) return;
  const ofAccount = digestsByAccountId.get(entry.accountId);
  ofAccount?.delete(digest);
  if (ofAccount?.size === 0) digestsByAccountId.delete(entry.accountId);
}

function emptyGeneration<T>(): Generation<T> {
  return {
    byDigest: new Map(),
    digestByKeyId: new Map(),
    digestsByAccountId: new Map(),
    weight: 0,
  };
}
