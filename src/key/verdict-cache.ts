/** Remembers what was found out about keys, for a while, within a fixed size. */

/** What is remembered of one digest. */
export interface Remembered<T> {
  readonly value: T;
  /** Until when it counts, on the clock of the cache's user, in milliseconds. */
  readonly untilMs: number;
  /** By what {@link VerdictCache.forget} finds it: the key and its account. `undefined`: it cannot be found. */
  readonly keyId: string | undefined;
  readonly accountId: string | undefined;
  /** How much room it takes, in units of the cache's size. */
  readonly weight: number;
}

/** All maps hold the same entries, so that none can outlive its way to be forgotten. */
interface Generation<T> {
  readonly byDigest: Map<string, Remembered<T>>;
  readonly digestByKeyId: Map<string, string>;
  readonly digestsByAccountId: Map<string, Set<string>>;
  weight: number;
}

/**
 * Keeps what was used lately: entries live in the young generation; when that holds half of the cache's
 * size it becomes the old one, and the old one is dropped. So a hit is one look-up that writes nothing (a
 * list in order of use would write at every hit), and what is in use is carried over.
 */
export class VerdictCache<T> {
  readonly #weightMax: number;
  #young: Generation<T> = emptyGeneration();
  #old: Generation<T> = emptyGeneration();

  /** `weightMax`: how much all entries may weigh together. */
  constructor(weightMax: number) {
    this.#weightMax = weightMax;
  }

  /** How many entries there are, those counted twice that were carried over. */
  get size(): number {
    return this.#young.byDigest.size + this.#old.byDigest.size;
  }

  /** What is remembered of this digest and still counts. */
  get(digest: string, nowMs: number): T | undefined {
    const young = this.#young.byDigest.get(digest);
    if (young !== undefined) return nowMs < young.untilMs ? young.value : undefined;
    const old = this.#old.byDigest.get(digest);
    if (old === undefined || nowMs >= old.untilMs) return undefined;
    this.set(digest, old);
    return old.value;
  }

  /** Remembers; what is already there is replaced. */
  set(digest: string, entry: Remembered<T>): void {
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

  /** Forgets what is remembered of a key, or of all keys of an account. */
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
