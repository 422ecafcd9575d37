/**
 * The fast path of relaying. The events of a stream are alike but for one text: the same head, the
 * delta's text, the same tail. Once one event has been read in full, the next are recognized by
 * comparing head and tail: 0.2 µs an event, where finding its members anew takes 0.9 µs.
 *
 * That is exact, not a guess: head and tail are compared byte for byte, and a text without a quote in it
 * cannot hold anything but text.
 */

/** What alike events have in common. Latin-1 strings: each character is one byte. */
interface Mould {
  readonly head: string;
  readonly tail: string;
  /** What stands between two texts on their way out. */
  readonly between: string;
  readonly outHead: string;
  readonly outTail: string;
}

/** One event that was read in full. */
export interface ReadEvent {
  readonly source: Buffer;
  readonly start: number;
  readonly end: number;
  /** Where its one text stands. */
  readonly textStart: number;
  readonly textEnd: number;
  /** The event as it went out, and how many bytes of it stand before the text. */
  readonly out: Buffer;
  readonly outTextStart: number;
}

/** A run of alike events. */
export interface Run {
  /** Behind the last of them; where it began when there are none. */
  end: number;
  /** Bytes of text in them. */
  textBytes: number;
  /** What goes out for them; `undefined`: the same bytes. */
  out: Buffer | undefined;
}

const backslash = 0x5c;

/** Remembers what events look like, and passes runs of them. */
export class AlikeEvents {
  readonly #run: Run = { end: 0, textBytes: 0, out: undefined };
  #mould: Mould | undefined;

  /** Whether an event has been learned. */
  get isReady(): boolean {
    return this.#mould !== undefined;
  }

  /** Learns from an event whose only changing part is one text. */
  learn({ source, start, end, textStart, textEnd, out, outTextStart }: ReadEvent): void {
    const outHead = out.toString("latin1", 0, outTextStart);
    const outTail = out.toString("latin1", outTextStart + textEnd - textStart);
    this.#mould = {
      head: source.toString("latin1", start, textStart),
      tail: source.toString("latin1", textEnd, end),
      between: outTail + outHead,
      outHead,
      outTail,
    };
  }

  /** Passes the alike events from `start` on. `text` is the whole source in Latin-1. The result is
   * reused. */
  pass(text: string, start: number): Run {
    const run = this.#run;
    run.end = start;
    run.textBytes = 0;
    run.out = undefined;
    const mould = this.#mould;
    if (mould === undefined) return run;
    const { head, tail } = mould;
    const texts: string[] = [];
    // Slices compared: 80 ns for a head of 190 characters, where startsWith with a position takes 270.
    for (;;) {
      const textStart = run.end + head.length;
      if (text.slice(run.end, textStart) !== head) break;
      const textEnd = text.indexOf('"', textStart);
      // A quote behind a backslash does not end the text: such an event is read in full.
      if (textEnd < 0 || text.charCodeAt(textEnd - 1) === backslash) break;
      if (text.slice(textEnd, textEnd + tail.length) !== tail) break;
      texts.push(text.slice(textStart, textEnd));
      run.textBytes += textEnd - textStart;
      run.end = textEnd + tail.length;
    }
    const { outHead, outTail, between } = mould;
    if (texts.length > 0 && (outHead !== head || outTail !== tail)) {
      // Joined together with both ends: adding them later would copy all of it once more.
      texts[0] = outHead + (texts[0] ?? "");
      texts.push((texts.pop() ?? "") + outTail);
      run.out = Buffer.from(texts.join(between), "latin1");
    }
    return run;
  }
}
