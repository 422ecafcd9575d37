/** Only chat completions: its chunks nest text in choices, so the scanners of json/ alone cannot find it.
 *
 * Finds everything that relaying needs in one reply or stream chunk, in one pass and without building values: about 1 ns
 * a byte, where JSON.parse of a 200-byte chunk takes 1.5 µs. It assumes valid JSON; on anything else the result is
 * harmless, never an exception.
 */
import { endOfString, isSpace, skipSpace, equalsAscii } from "../json/object-scan.ts";

/** What one pass found. Offsets are into the scanned buffer; -1: not there. One object is reused. */
export class ChunkScan {
  modelStart = -1;
  modelEnd = -1;
  /** The member `usage` with the comma that joins it to the rest, for taking it out. */
  usageCutStart = -1;
  usageCutEnd = -1;
  usageStart = -1;
  usageEnd = -1;
  errorStart = -1;
  errorEnd = -1;
  /** Whether `choices` is an empty array. */
  choicesEmpty = false;
  /** How many choices say why they finished. An empty reason is none. */
  finishes = 0;
  /** Bytes of text in deltas and messages: string values at any depth below them, but for the role. */
  textBytes = 0;

  /** How many strings that text is spread over, and where the last one's text stands. */
  texts = 0;
  textStart = -1;
  textEnd = -1;

  #memberStart = 0;
  #keyStart = 0;
  #keyEnd = 0;
  #choicesStart = -1;
  #inText = false;
  #keyIsFinish = false;
  #keyIsRole = false;

  /** Scans the JSON object from `start` to `end`. */
  scan(bytes: Buffer, start: number, end: number): void {
    this.#reset();
    let depth = 0;
    let valueStart = -1;
    let firstMember = true;
    for (let i = start; i < end; i++) {
      const byte = bytes[i];
      if (byte === 0x22) {
        const close = endOfString(bytes, i + 1, end);
        const isKey = bytes[close + 1] === 0x3a || isKeyBeforeSpace(bytes, close + 1, end);
        if (depth === 1 && valueStart < 0) {
          this.#keyStart = i;
          this.#keyEnd = close;
        } else if (this.#choicesStart >= 0) {
          this.#stringInChoices(bytes, i, close, depth, isKey);
        }
        i = close;
      } else if (byte === 0x3a) {
        if (depth === 1 && valueStart < 0) {
          valueStart = skipSpace(bytes, i + 1, end);
          if (this.#keyIs(bytes, "choices")) this.#choicesStart = valueStart;
        }
      } else if (byte === 0x2c) {
        if (depth === 1) {
          this.#member(bytes, valueStart, i, firstMember);
          this.#memberStart = i;
          valueStart = -1;
          firstMember = false;
        }
      } else if (byte === 0x7b || byte === 0x5b) {
        depth++;
        if (depth === 1) this.#memberStart = i + 1;
      } else if (byte === 0x7d || byte === 0x5d) {
        if (depth === 1 && valueStart >= 0) this.#member(bytes, valueStart, i, firstMember);
        depth--;
        if (depth === 0) return;
      }
    }
  }

  #reset(): void {
    this.modelStart = this.usageStart = this.errorStart = -1;
    this.modelEnd = this.usageEnd = this.errorEnd = -1;
    this.usageCutStart = this.usageCutEnd = -1;
    this.choicesEmpty = false;
    this.textBytes = this.texts = this.finishes = 0;
    this.#choicesStart = -1;
    this.#inText = this.#keyIsFinish = this.#keyIsRole = false;
  }

  #member(bytes: Buffer, valueStart: number, at: number, first: boolean): void {
    const valueEnd = trimSpace(bytes, valueStart, at);
    if (this.#keyIs(bytes, "model")) {
      this.modelStart = valueStart;
      this.modelEnd = valueEnd;
    } else if (this.#keyIs(bytes, "usage")) {
      this.usageStart = valueStart;
      this.usageEnd = valueEnd;
      // The first member goes with the comma behind it, any other with the one before it.
      this.usageCutStart = first ? this.#keyStart : this.#memberStart;
      this.usageCutEnd = first && bytes[at] === 0x2c ? at + 1 : valueEnd;
    } else if (this.#keyIs(bytes, "error")) {
      this.errorStart = valueStart;
      this.errorEnd = valueEnd;
    } else if (this.#choicesStart >= 0 && valueStart === this.#choicesStart) {
      this.choicesEmpty = skipSpace(bytes, valueStart + 1, valueEnd) === valueEnd - 1;
      this.#choicesStart = -1;
    }
  }

  /** Depths inside choices: 2 the array, 3 a choice, 4 its delta or message. */
  #stringInChoices(
    bytes: Buffer,
    open: number,
    close: number,
    depth: number,
    isKey: boolean,
  ): void {
    if (depth === 3) {
      if (isKey) {
        this.#inText =
          equalsAscii(bytes, open + 1, close, "delta") ||
          equalsAscii(bytes, open + 1, close, "message");
        this.#keyIsFinish = equalsAscii(bytes, open + 1, close, "finish_reason");
      } else if (this.#keyIsFinish && close > open + 1) {
        this.finishes++;
      }
    } else if (isKey) {
      this.#keyIsRole = depth === 4 && equalsAscii(bytes, open + 1, close, "role");
    } else if (this.#inText && !this.#keyIsRole) {
      this.texts++;
      this.textStart = open + 1;
      this.textEnd = close;
      this.textBytes += close - open - 1;
    }
  }

  #keyIs(bytes: Buffer, word: string): boolean {
    return equalsAscii(bytes, this.#keyStart + 1, this.#keyEnd, word);
  }
}

function isKeyBeforeSpace(bytes: Buffer, at: number, end: number): boolean {
  return isSpace(bytes[at]) && bytes[skipSpace(bytes, at, end)] === 0x3a;
}

function trimSpace(bytes: Buffer, start: number, end: number): number {
  let i = end;
  while (i > start && isSpace(bytes[i - 1])) i--;
  return i;
}
