/**
 * Counts tokens by byte pair encoding, with the tables and patterns of gpt-tokenizer but not its counter, whose time
 * grows with the square of a word's length: 2 MB without a space would block the counting thread for 20 minutes.
 *
 * Measured with gpt-tokenizer 4.0 (o200k_base, empty merge cache, CPU time on a 2-core machine), its counter and ours:
 * 100 KB of letters without a space 3.6 s and 0.11 s, 100 KB of spaces 4.5 s and 0.004 s. Ours takes at most 1.0 s for
 * 1 MB, since no word is longer than {@link wordCharsMax}. On 1 MB of English both take 0.18 s; on text that repeats,
 * the library's cache is faster. Memory is equal: 17 MB of heap for the tables. Its counter behind the same cut of
 * long words was as fast as ours, so this file can give way to such a cut.
 */
import type { Encoding } from "./family.ts";

/** Counts the tokens of a text. Words for control such as `<|endoftext|>` are text like any other. */
export type CountText = (text: string) => number;

/** Texts between words that are longer are cut here, in UTF-16 units. No language has such words: it is
 * base64, a run of one sign, or an attack. Each cut may cost one token more than the vendor counts. */
export const wordCharsMax = 128;

/** How much of a text the pattern sees at once, in UTF-16 units: it must not run out of stack. */
const windowChars = 16_384;

/** Loads the tables: 0.2 s and 80 MB, so only in a thread of its own. */
export async function loadEncoding(encoding: Encoding): Promise<CountText> {
  const [{ default: ranks }, { O200K_TOKEN_SPLIT_REGEX, CL100K_TOKEN_SPLIT_REGEX }] =
    await Promise.all([
      encoding === "o200k_base"
        ? import("gpt-tokenizer/bpeRanks/o200k_base")
        : import("gpt-tokenizer/bpeRanks/cl100k_base"),
      import("gpt-tokenizer/encodingParams/constants"),
    ]);
  const words = encoding === "o200k_base" ? O200K_TOKEN_SPLIT_REGEX : CL100K_TOKEN_SPLIT_REGEX;
  const table = new Ranks(ranks);
  return (text) => countText(text, words, table);
}

/** The tokens by their bytes, one character each. */
class Ranks {
  readonly #byBytes = new Map<string, number>();
  /** Of tokens of two bytes: a third of all that is looked up. */
  readonly #byPair = new Float64Array(0x10000).fill(Infinity);

  constructor(tokens: readonly (string | readonly number[])[]) {
    // Holes are skipped.
    tokens.forEach((token, rank) => {
      const bytes = byteText(token);
      this.#byBytes.set(bytes, rank);
      if (bytes.length === 2) this.#byPair[pairAt(bytes, 0)] = rank;
    });
  }

  has(bytes: string): boolean {
    return this.#byBytes.has(bytes);
  }

  /** The rank of a part; infinite: it is no token. */
  of(bytes: string, start: number, end: number): number {
    return end - start === 2
      ? (this.#byPair[pairAt(bytes, start)] ?? Infinity)
      : (this.#byBytes.get(bytes.slice(start, end)) ?? Infinity);
  }
}

function pairAt(bytes: string, at: number): number {
  return bytes.charCodeAt(at) | (bytes.charCodeAt(at + 1) << 8);
}

function countText(text: string, words: RegExp, ranks: Ranks): number {
  let count = 0;
  for (let at = 0; at < text.length; ) {
    const end = windowEnd(text, at);
    for (const [word] of text.slice(at, end).matchAll(words)) {
      count += word.length <= wordCharsMax ? countWord(word, ranks) : countLong(word, ranks);
    }
    at = end;
  }
  return count;
}

/** Where the window that begins at `from` ends: before a space that follows a word, where words end in any
 * case; if there is none, anywhere but in the middle of a character. */
function windowEnd(text: string, from: number): number {
  const end = from + windowChars;
  if (end >= text.length) return text.length;
  for (let at = end; at > end - windowChars / 2; at--) {
    if (text[at] === " " && /\S/.test(text[at - 1] ?? " ")) return at;
  }
  return wholeCharacters(text, end);
}

function countLong(word: string, ranks: Ranks): number {
  let count = 0;
  for (let at = 0; at < word.length; ) {
    const end = wholeCharacters(word, Math.min(word.length, at + wordCharsMax));
    count += countWord(word.slice(at, end), ranks);
    at = end;
  }
  return count;
}

/** `end`, or one more where it would split a surrogate pair. */
function wholeCharacters(text: string, end: number): number {
  const unit = text.charCodeAt(end);
  return unit >= 0xdc00 && unit <= 0xdfff ? end + 1 : end;
}

function countWord(word: string, ranks: Ranks): number {
  const bytes = byteText(word);
  return ranks.has(bytes) ? 1 : countMerged(bytes, ranks);
}

/** The lowest rank merges first, until no two neighbours are a token together. */
function countMerged(bytes: string, ranks: Ranks): number {
  const starts = Array.from({ length: bytes.length + 1 }, (_, at) => at);
  const rankAt = (part: number): number => {
    const end = starts[part + 2];
    return end === undefined ? Infinity : ranks.of(bytes, starts[part] ?? 0, end);
  };
  const pairs = starts.map((_, part) => rankAt(part));
  for (;;) {
    let lowest = Infinity;
    let found = -1;
    for (let part = 0; part < pairs.length; part++) {
      const rank = pairs[part] ?? Infinity;
      if (rank < lowest) {
        lowest = rank;
        found = part;
      }
    }
    if (found < 0) return starts.length - 1;
    starts.splice(found + 1, 1);
    pairs.splice(found + 1, 1);
    pairs[found] = rankAt(found);
    if (found > 0) pairs[found - 1] = rankAt(found - 1);
  }
}

/** The UTF-8 bytes of a text as a string of one character a byte: what tables can be looked up by. */
function byteText(text: string | readonly number[]): string {
  if (typeof text !== "string") return String.fromCharCode(...text);
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text).toString("latin1");
}
