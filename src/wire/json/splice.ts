import { asBuffer, emptyBuffer } from "../../core/bytes.ts";

/** An edit of a body: the bytes from `start` to `end` (exclusive) are replaced by `text`. */
export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/**
 * Collects replacements of byte ranges in ascending order and applies them in one copy. Reusable.
 */
export class Splicer {
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #texts: Array<Uint8Array | undefined> = [];

  /** Replaces the bytes from `start` to `end` (exclusive) by `text`, or by nothing. */
  replace(start: number, end: number, text?: Uint8Array): void {
    this.#starts.push(start);
    this.#ends.push(end);
    this.#texts.push(text);
  }

  /** Number of collected replacements. */
  get size(): number {
    return this.#starts.length;
  }

  /**
   * The first `length` bytes of `source` with the replacements applied; clears them. Without any, a
   * view of `source`, not a copy.
   */
  apply(source: Buffer, length: number): Buffer {
    if (this.#starts.length === 0)
      return length === source.length ? source : source.subarray(0, length);
    if (this.#starts.length === 1 && this.#starts[0] === 0 && this.#ends[0] === length) {
      // An array whose length is set to 0 allocates memory again for its next element.
      this.#starts.pop();
      this.#ends.pop();
      return asBuffer(this.#texts.pop() ?? emptyBuffer);
    }
    let size = length;
    for (let i = 0; i < this.#starts.length; i++) {
      size += (this.#texts[i]?.length ?? 0) - ((this.#ends[i] ?? 0) - (this.#starts[i] ?? 0));
    }
    const target = Buffer.allocUnsafe(size);
    let read = 0;
    let written = 0;
    for (let i = 0; i < this.#starts.length; i++) {
      const start = this.#starts[i] ?? 0;
      written += source.copy(target, written, read, start);
      const text = this.#texts[i];
      if (text !== undefined) {
        target.set(text, written);
        written += text.length;
      }
      read = this.#ends[i] ?? start;
    }
    source.copy(target, written, read, length);
    this.clear();
    return target;
  }

  /** Applies and clears all replacements; unchanged ranges are not copied. */
  pieces(source: Buffer): Buffer[] {
    const pieces: Buffer[] = [];
    let read = 0;
    const add = (piece: Uint8Array | undefined): void => {
      if (piece !== undefined && piece.length > 0) pieces.push(asBuffer(piece));
    };
    for (let i = 0; i < this.#starts.length; i++) {
      add(source.subarray(read, this.#starts[i]));
      add(this.#texts[i]);
      read = this.#ends[i] ?? read;
    }
    add(source.subarray(read));
    this.clear();
    return joinHead(pieces);
  }

  /** Applies and clears the replacements after the first `size`. */
  take(size: number, source: Buffer): Buffer {
    const taken = this.preview(size, source, { start: 0, end: source.length });
    this.clear(size);
    return taken;
  }

  /** Applies the replacements after the first `size` to a range, and keeps them. */
  preview(size: number, source: Buffer, { start, end }: { start: number; end: number }): Buffer {
    const inner = new Splicer();
    for (let i = size; i < this.#starts.length; i++) {
      inner.replace((this.#starts[i] ?? 0) - start, (this.#ends[i] ?? 0) - start, this.#texts[i]);
    }
    return inner.apply(source.subarray(start, end), end - start);
  }

  /** The offset by which the replacements after the first `size` move position `at`. */
  shift(size: number, at: number): number {
    let shift = 0;
    for (let i = size; i < this.#starts.length && (this.#ends[i] ?? 0) <= at; i++) {
      shift += (this.#texts[i]?.length ?? 0) - ((this.#ends[i] ?? 0) - (this.#starts[i] ?? 0));
    }
    return shift;
  }

  /** Forgets the replacements after the first `size`. */
  clear(size = 0): void {
    this.#starts.length = size;
    this.#ends.length = size;
    this.#texts.length = size;
  }
}

/** Length of the joined first piece. */
const headBytes = 64 * 1024;

/** Joins the first pieces so that the first packet is full; the rest is not copied. */
function joinHead(pieces: Buffer[]): Buffer[] {
  const head: Buffer[] = [];
  const rest: Buffer[] = [];
  let room = headBytes;
  for (const piece of pieces) {
    const taken = Math.min(room, piece.length);
    if (taken > 0) head.push(piece.subarray(0, taken));
    if (taken < piece.length) rest.push(piece.subarray(taken));
    room -= taken;
  }
  return [Buffer.concat(head), ...rest];
}
