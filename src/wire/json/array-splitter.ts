/**
 * Finds the objects of a JSON array in bytes that arrive in arbitrary pieces. Assumes valid JSON.
 */
import { GrowingBuffer } from "../../core/bytes.ts";
import { EventTooLongError, type UnfinishedEvent } from "../sse/event-stream.ts";

const quote = 0x22;
const backslash = 0x5c;
const open = 0x7b;
const close = 0x7d;

/** Called for each complete object. */
export type OnObject = (bytes: Buffer, start: number, end: number) => void;

/** Splits one array. */
export class ArraySplitter implements UnfinishedEvent {
  readonly #objectBytesMax: number;
  readonly #onObject: OnObject;
  #rest: GrowingBuffer | undefined;
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  constructor(objectBytesMax: number, onObject: OnObject) {
    this.#objectBytesMax = objectBytesMax;
    this.#onObject = onObject;
  }

  /** The received bytes of an incomplete object. */
  get rest(): Buffer | undefined {
    return this.#rest?.bytes;
  }

  /** The length of {@link rest}. */
  get restBytes(): number {
    return this.#rest?.length ?? 0;
  }

  endIn(pieces: readonly Buffer[]): number {
    const before = { depth: this.#depth, isText: this.#isText, isEscaped: this.#isEscaped };
    const end = this.#findEnd(pieces);
    this.#depth = before.depth;
    this.#isText = before.isText;
    this.#isEscaped = before.isEscaped;
    return end;
  }

  #findEnd(pieces: readonly Buffer[]): number {
    let passed = 0;
    for (const piece of pieces) {
      for (const byte of piece) {
        passed++;
        if (this.#isText) this.#inText(byte);
        else if (byte === quote) this.#isText = true;
        else if (byte === open) this.#depth++;
        else if (byte === close && --this.#depth === 0) return passed;
      }
    }
    return 0;
  }

  /**
   * @returns the bytes up to the last complete object, separators included @throws
   * EventTooLongError
   */
  push(piece: Buffer): Buffer {
    const known = this.restBytes;
    this.#rest?.append(piece);
    const source = this.#rest?.bytes ?? piece;
    let start = this.#rest === undefined ? -1 : 0;
    for (let at = known; at < source.length; at++) {
      const byte = source[at];
      if (this.#isText) this.#inText(byte);
      else if (byte === quote) this.#isText = true;
      else if (byte === open && this.#depth++ === 0) start = at;
      else if (byte === close && --this.#depth === 0) {
        this.#onObject(source, start, at + 1);
        start = -1;
      }
    }
    // An object that is still the first one keeps its memory.
    if (start < 0) this.#rest = undefined;
    else if (start > 0 || known === 0) this.#rest = new GrowingBuffer(source.subarray(start));
    if (this.restBytes <= this.#objectBytesMax) {
      return start < 0 ? source : source.subarray(0, start);
    }
    throw new EventTooLongError(`an object is longer than ${this.#objectBytesMax} bytes`);
  }

  #inText(byte: number | undefined): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === backslash) this.#isEscaped = true;
    else if (byte === quote) this.#isText = false;
  }
}
