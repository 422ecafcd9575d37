/** Finds the objects of a JSON array in bytes that arrive in any pieces. Trusts the bytes to be JSON. */
import { joinBuffers, emptyBuffer } from "../../core/bytes.ts";
import { EventTooLongError } from "../sse/event-stream.ts";

const quote = 0x22;
const backslash = 0x5c;
const open = 0x7b;
const close = 0x7d;

/** Told of each complete object. */
export type OnObject = (bytes: Buffer, start: number, end: number) => void;

/** Goes through one array. */
export class ArraySplitter {
  readonly #objectBytesMax: number;
  readonly #onObject: OnObject;
  #rest: Buffer = emptyBuffer;
  #depth = 0;
  #isText = false;
  #isEscaped = false;

  constructor(objectBytesMax: number, onObject: OnObject) {
    this.#objectBytesMax = objectBytesMax;
    this.#onObject = onObject;
  }

  /** What has come of an object that is not complete. */
  get rest(): Buffer {
    return this.#rest;
  }

  /** @returns what came up to the last complete object, with what stands between them @throws EventTooLongError */
  push(piece: Buffer): Buffer {
    const source = this.#rest.length === 0 ? piece : joinBuffers([this.#rest, piece]);
    let start = this.#rest.length === 0 ? -1 : 0;
    for (let at = this.#rest.length; at < source.length; at++) {
      const byte = source[at];
      if (this.#isText) this.#inText(byte);
      else if (byte === quote) this.#isText = true;
      else if (byte === open && this.#depth++ === 0) start = at;
      else if (byte === close && --this.#depth === 0) {
        this.#onObject(source, start, at + 1);
        start = -1;
      }
    }
    this.#rest = start < 0 ? emptyBuffer : Buffer.from(source.subarray(start));
    if (this.#rest.length <= this.#objectBytesMax) {
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
