/**
 * Collections of short-lived objects of calls, such as running requests.
 *
 * A `Set` or a `Map` keeps deleted objects until the next full garbage collection. When its table
 * is full, V8 makes a new one; the old table keeps its keys and values, and refers to the new one.
 * Once one table has survived two collections of the young generation, all later ones are kept
 * alive with it, and so is every object that was in them. They move to the old generation with all
 * objects that they refer to: requests, sockets' buffers, promises.
 */

/** An object that a {@link ShortLivedSet} can hold. It can be in one such set at a time. */
export interface Placed {
  /** Its position in the set, which alone changes it; -1 if it is in no set. */
  place: number;
}

/** A set of objects, in no order. */
export class ShortLivedSet<T extends Placed> {
  /** Never shorter than before: a shorter array gets new memory when it grows again. */
  readonly #places: Array<T | undefined> = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Adds an object, if it is absent. */
  add(object: T): void {
    if (object.place >= 0) return;
    object.place = this.#size;
    this.#places[this.#size++] = object;
  }

  /** Removes an object. @returns whether it was there */
  delete(object: T): boolean {
    const { place } = object;
    if (place < 0) return false;
    const last = this.#places[--this.#size] as T;
    this.#places[place] = last;
    last.place = place;
    this.#places[this.#size] = undefined;
    object.place = -1;
    return true;
  }

  /** The current objects. */
  list(): readonly T[] {
    return this.#places.slice(0, this.#size) as T[];
  }
}

/**
 * A map from ids to objects, in the order of their first addition. It keeps deleted ids like a
 * `Map`, but not the objects.
 */
export class ShortLivedMap<T extends object> {
  readonly #slots = new Map<string, { object: T | undefined }>();

  get size(): number {
    return this.#slots.size;
  }

  /** The object of an id. */
  get(id: string): T | undefined {
    return this.#slots.get(id)?.object;
  }

  /** Adds or replaces the object of an id. */
  set(id: string, object: T): void {
    const slot = this.#slots.get(id);
    if (slot === undefined) this.#slots.set(id, { object });
    else slot.object = object;
  }

  /** Removes the object of an id. @returns whether it was there */
  delete(id: string): boolean {
    const slot = this.#slots.get(id);
    if (slot === undefined) return false;
    slot.object = undefined;
    return this.#slots.delete(id);
  }

  /** The objects. While they are read, others may be added and removed, as in a `Map`. */
  *values(): Generator<T, undefined> {
    for (const { object } of this.#slots.values()) if (object !== undefined) yield object;
  }
}
