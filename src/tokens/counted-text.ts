/** Counts the text that a model reads in a request or wrote in a reply, in any style. Pure. */
import type { Encoding } from "./family.ts";

/** Tokens that OpenAI's chat models add for each message, and for the start of the reply. */
const messageTokens = 3;
const replyTokens = 3;

/** The members of a request that models read. */
const modelMembers = new Set([
  "messages",
  "input",
  "contents",
  "system",
  "instructions",
  "systemInstruction",
  "prompt",
  "tools",
  "functions",
  "response_format",
  "text",
]);

/** Members that models read as JSON. Vendors may shorten tools, but never make them longer. */
const jsonMembers = new Set(["tools", "functions", "response_format", "input", "args", "response"]);

/** Members that only the vendor reads, not its model. */
const vendorOnly = new Set([
  "id",
  "type",
  "tool_call_id",
  "tool_use_id",
  "call_id",
  "item_id",
  "status",
  "phase",
  "detail",
  "media_type",
  "mimeType",
  "filename",
  "encrypted_content",
  "signature",
  "thoughtSignature",
  "thought_signature",
]);

/** Members of a reply that the model wrote. */
const writtenMembers = new Set([
  "content",
  "text",
  "refusal",
  "reasoning_content",
  "reasoning",
  "thinking",
  "arguments",
  "name",
  "input",
  "args",
]);

/** Counts a request without its media. @param json one JSON object */
export function countRequest(json: string, count: CountText): number {
  let tokens = replyTokens;
  for (const [name, value] of Object.entries(recordOf(json))) {
    if (!modelMembers.has(name)) continue;
    const isJson = name !== "input" && jsonMembers.has(name);
    tokens += isJson ? count(JSON.stringify(value)) : countValue(value, count);
  }
  return tokens;
}

/** Counts a complete reply without usage. @param json one JSON object */
export function countReply(json: string, count: CountText): number {
  return countWritten(recordOf(json), count);
}

function countValue(value: unknown, count: CountText): number {
  if (typeof value === "string") return count(value);
  // An embeddings request may contain tokens instead of text.
  if (typeof value === "number") return 1;
  if (Array.isArray(value)) {
    return value.reduce((sum: number, each) => sum + countValue(each, count), 0);
  }
  if (typeof value !== "object" || value === null) return 0;
  let tokens = "role" in value ? messageTokens : 0;
  for (const [name, each] of Object.entries(value)) {
    if (vendorOnly.has(name) || typeof each === "number") continue;
    const isJson = jsonMembers.has(name) && typeof each === "object";
    tokens += isJson ? count(JSON.stringify(each)) : countValue(each, count);
  }
  return tokens;
}

function countWritten(value: unknown, count: CountText): number {
  if (Array.isArray(value)) {
    return value.reduce((sum: number, each) => sum + countWritten(each, count), 0);
  }
  if (typeof value !== "object" || value === null) return 0;
  let tokens = 0;
  for (const [name, each] of Object.entries(value)) {
    if (typeof each !== "object") {
      if (typeof each === "string" && writtenMembers.has(name)) tokens += count(each);
    } else if (name === "input" || name === "args") tokens += count(JSON.stringify(each));
    else tokens += countWritten(each, count);
  }
  return tokens;
}

function recordOf(json: string): object {
  const value: unknown = JSON.parse(json);
  return typeof value === "object" && value !== null ? value : {};
}

/*
 * Counts tokens by byte pair encoding, with the tables and patterns of gpt-tokenizer but not its
 * counter, whose time grows with the square of a word's length: 2 MB without a space would block
 * the counting thread for 20 minutes.
 *
 * Measured with gpt-tokenizer 4.0 (o200k_base, empty merge cache, CPU time on a 2-core machine),
 * its counter and this one: 100 KB of letters without a space 3.6 s and 0.11 s, 100 KB of spaces
 * 4.5 s and 0.004 s. This one takes at most 1.0 s for 1 MB, since no word is longer than {@link
 * wordCharsMax}. On 1 MB of English both take 0.18 s; on text that repeats, the library's cache is
 * faster. Memory is equal: 17 MB of heap for the tables. With the same cut of long words, its
 * counter was as fast as this one, so this part can be replaced by such a cut.
 */

/** Counts the tokens of a text. Control words such as `<|endoftext|>` are counted as text. */
export type CountText = (text: string) => number;

/**
 * Longer words are cut at this length, in UTF-16 units. No language has such words: they are
 * base64, one repeated character, or an attack. Each cut may add one token to the vendor's count.
 */
export const wordCharsMax = 128;

/**
 * The length of text that the pattern matches at once, in UTF-16 units: longer texts can overflow
 * its stack.
 */
const windowChars = 16_384;

/** Loads the tables. This takes 0.2 s and 80 MB, so call it only in a worker thread. */
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

/** The ranks of tokens by their bytes, as strings of one character a byte. */
class Ranks {
  readonly #byBytes = new Map<string, number>();
  /** The ranks of two-byte tokens: a third of all lookups. */
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

  /** The rank of a part; Infinity if it is not a token. */
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

/**
 * The end of the window that begins at `from`: before a space that follows a word, because a token
 * ends there in any case. Otherwise anywhere except inside a character.
 */
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

/** Moves `end` by one if it would split a surrogate pair. */
function wholeCharacters(text: string, end: number): number {
  const unit = text.charCodeAt(end);
  return unit >= 0xdc00 && unit <= 0xdfff ? end + 1 : end;
}

function countWord(word: string, ranks: Ranks): number {
  const bytes = byteText(word);
  return ranks.has(bytes) ? 1 : countMerged(bytes, ranks);
}

/** Merges the pair with the lowest rank until no two neighbours form a token. */
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

/** Converts a text to a string of one character per UTF-8 byte, the key of the tables. */
function byteText(text: string | readonly number[]): string {
  if (typeof text !== "string") return String.fromCharCode(...text);
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text).toString("latin1");
}
