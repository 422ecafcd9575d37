/** Choices by chance that a seed repeats. */
import { createRandom } from "../chaos/plan.ts";

/** A source of choices. */
export class Chance {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = createRandom(seed);
  }

  /** From 0 to below `count`. */
  below(count: number): number {
    return Math.floor(this.#next() * count);
  }

  /** Whether a thing of this probability happens. */
  is(probability: number): boolean {
    return this.#next() < probability;
  }

  /** Returns one of them. @throws if there is none */
  of<T>(all: readonly T[]): T {
    if (all.length === 0) throw new Error("nothing to choose from");
    return all[this.below(all.length)] as T;
  }

  /** The seed of another source. */
  seed(): number {
    return this.below(2 ** 31);
  }

  /** So many bytes. */
  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length);
    for (let at = 0; at < length; at++) bytes[at] = this.below(256);
    return bytes;
  }
}

/** The seed of the request with this number: any one can be made alone. */
export function seedAt(seed: number, index: number): number {
  return (Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(index + 1, 0xc2b2ae35)) >>> 0;
}
