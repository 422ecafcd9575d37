/**
 * The input of a call while it is streamed. In every style some vendors send an empty object
 * before the real input, or the whole input again behind its pieces: nothing of that is joined.
 * Pure.
 */
import { parseRecord } from "../wire/json/value.ts";

/**
 * Inputs that vendors send before the real one, and the beginnings of these: nothing, `{}` and
 * `null`, with any white space. Each part begins with another character, so a long input is left at
 * its first one.
 */
const placeholder = /^\s*(?:\{\s*(?:\}\s*)?|n(?:u(?:ll?)?)?\s*)?$/;

/** Collects an input, and gives out what clients do not have yet. */
export class StreamedInput {
  #text = "";
  /** Tracks the input, to detect when it is a whole object. */
  #end = new ObjectEnd();
  /** Characters of the input that clients have received. */
  #sent = 0;
  #isComplete = false;
  /** Whether it is the free text of a custom tool: of that, any piece may follow any other. */
  isText = false;

  /** All of the input so far. */
  get text(): string {
    return this.#text;
  }

  /** Whether an object began and ended. What follows repeats it. */
  get isWhole(): boolean {
    return this.#end.isWhole;
  }

  /** Whether it may be only a placeholder before the real input. */
  get isPlaceholder(): boolean {
    return isPlaceholder(this.#text);
  }

  /**
   * Whether a piece is the same object as the whole input, apart from white space. An empty one may
   * precede the real one.
   */
  isRepeatedBy(piece: string): boolean {
    if (piece === "" || !this.isWhole) return false;
    const again = parseRecord(piece);
    const whole = parseRecord(this.#text);
    if (again === undefined || whole === undefined || Object.keys(again).length === 0) return false;
    return JSON.stringify(again) === JSON.stringify(whole);
  }

  /** Adds a piece. */
  add(piece: string): void {
    if (this.isText) this.#text += piece;
    else if (this.isPlaceholder && startsObject(piece)) {
      // The real input follows an empty one.
      this.#text = piece;
      this.#end = new ObjectEnd();
      this.#end.push(piece);
    } else if (!this.isWhole || this.isPlaceholder) {
      this.#text += piece;
      this.#end.push(piece);
    }
  }

  /**
   * Records that no piece follows. @param whole the whole input, if the vendor repeats it. Default:
   * it does not
   */
  complete(whole = ""): void {
    const isUnsent = this.#sent === 0 && this.isPlaceholder;
    if (whole !== "" && (isUnsent || whole.startsWith(this.#text))) this.#text = whole;
    this.#isComplete = true;
  }

  /**
   * Returns the part that clients have not received. A beginning that may be a placeholder is held
   * back.
   */
  take(): string {
    if (!this.isText && !this.#isComplete && this.isPlaceholder) return "";
    const rest = this.#text.slice(this.#sent);
    this.#sent += rest.length;
    return rest;
  }
}

/** Whether a text may only stand in front of the real input. */
export function isPlaceholder(input: string): boolean {
  return placeholder.test(input);
}

/** Whether a piece begins an object. */
export function startsObject(piece: string): boolean {
  return piece.trimStart().startsWith("{");
}

/** Tracks a JSON object through its pieces, to detect its end. */
class ObjectEnd {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  /** Whether an object began and ended. */
  isWhole = false;

  push(piece: string): void {
    for (const char of piece) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.#isInText) {
        if (char === "\\") this.#isEscaped = true;
        else if (char === '"') this.#isInText = false;
      } else if (char === '"') this.#isInText = true;
      else if (char === "{" || char === "[") this.#depth++;
      else if ((char === "}" || char === "]") && --this.#depth === 0) this.isWhole = true;
    }
  }
}
