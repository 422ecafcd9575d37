/**
 * Reads files piece by piece. A measurement is a generator that asks for spans of its file, so that
 * one implementation serves files in memory and on disk.
 */

/**
 * Bytes of a second of a recording whose format or codec is not known: of the slowest usual speech,
 * 24 kbit/s. Such a recording counts as longer than it is, rather than shorter.
 */
export const bytesPerSecondMin = 3_000;

/** Bytes that a measurement needs next. */
export interface Span {
  readonly position: number;
  readonly length: number;
}

/**
 * Asks for spans, and returns its result. It gets fewer bytes than it asked for at the end of the
 * file.
 */
export type Measurement<Result = number | undefined> = Generator<Span, Result, Buffer>;

/** Reads up to `length` bytes from a position; fewer at the end of the file. */
export type ReadAt = (position: number, length: number) => Promise<Buffer>;

/** Bytes per read of a file. Longer than any frame or page of a format. */
export const windowBytes = 256 * 1_024;

/** Reads bytes, padded with zeros beyond the end of the file. */
export function* readPadded(position: number, length: number): Measurement<Buffer> {
  const found = yield { position, length };
  return found.length === length ? found : Buffer.concat([found], length);
}

/** Reads small parts of a file in order, out of one that was read at once. */
export class FileWindow {
  #start = 0;
  #part: Buffer = Buffer.alloc(0);

  /** The bytes from a position to the end of what was read; empty at the end of the file. */
  *rest(position: number, length = 1): Measurement<Buffer> {
    const end = this.#start + this.#part.length;
    if (position < this.#start || position + length > end) {
      this.#part = yield { position, length: windowBytes };
      this.#start = position;
    }
    return this.#part.subarray(position - this.#start);
  }

  /**
   * Up to `length` bytes from a position, at most {@link windowBytes}; fewer at the end of the
   * file.
   */
  *read(position: number, length: number): Measurement<Buffer> {
    return (yield* this.rest(position, length)).subarray(0, length);
  }
}

/** Measures a file that is read on demand. */
export async function measureFile<Result>(
  measurement: Measurement<Result>,
  readAt: ReadAt,
): Promise<Result> {
  for (let step = measurement.next(); ; ) {
    if (step.done) return step.value;
    const { position, length } = step.value;
    step = measurement.next(await readAt(position, length));
  }
}

/** Measures a file in memory. */
export function measureBytes<Result>(measurement: Measurement<Result>, file: Buffer): Result {
  for (let step = measurement.next(); ; ) {
    if (step.done) return step.value;
    const { position, length } = step.value;
    step = measurement.next(file.subarray(position, position + length));
  }
}
