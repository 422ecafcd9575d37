/**
 * Replaces URLs in JSON without parsing it: `"uri": "https://vendor/v1/x"` becomes `"uri":
 * "https://us/gemini/v1/x"` in the listed members, and nothing else changes. Parsing and rewriting
 * would alter 64-bit numbers, `-0.10` and white space, and URLs in the model's text must stay
 * unchanged.
 */
import { joinBuffers, emptyBuffer } from "../../core/bytes.ts";

/** A URL prefix and its replacement, both without a trailing slash. */
export interface AddressEdit {
  readonly from: string;
  readonly to: string;
  /** The members whose value is rewritten. All by default. */
  readonly members?: ReadonlySet<string>;
}

/** The members to search for, and the places to search. */
interface Rules {
  readonly needles: readonly Needle[];
  /** The length of the longest one. */
  readonly longest: number;
  /** Common parts of all spellings, searched for first at half the cost. */
  readonly hosts: readonly Buffer[];
}

/** The rules of edits that many replies have in common. */
const known = new WeakMap<readonly AddressEdit[], Rules>();

/** A URL prefix as bytes; some writers escape every slash. */
interface Needle {
  readonly from: Buffer;
  readonly to: Buffer;
  readonly members: ReadonlySet<string> | undefined;
}

/** Characters that may follow the prefix: a path, a query, or the end of the string. */
const boundaries = new Set(['"', "/", "\\", "?", ":"].map((sign) => sign.charCodeAt(0)));
const quote = 0x22;
const colon = 0x3a;

/** Bytes of relayed output kept for finding a member's name. */
const behindBytesMax = 256;

/**
 * Rewrites bytes that arrive in arbitrary pieces. A possible start of a URL waits for the next
 * piece.
 */
export class AddressRewriter {
  readonly #rules: Rules;
  /** The end of the relayed output. */
  #behind: Buffer = emptyBuffer;
  /** The bytes that wait. */
  #rest: Buffer = emptyBuffer;

  /** @param edits preferably the same list each time: its rules are then computed once */
  constructor(edits: readonly AddressEdit[]) {
    this.#rules = rulesOf(edits);
  }

  /** Whether there may be a URL. Costs one search. */
  finds(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): boolean {
    const part = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
    return this.#rules.hosts.some((host) => part.includes(host));
  }

  /** Returns the bytes that can be relayed. A piece without URLs is returned unchanged. */
  push(piece: Buffer): Buffer {
    if (this.#rules.needles.length === 0) return piece;
    const source = this.#rest.length === 0 ? piece : joinBuffers([this.#rest, piece]);
    const waits = this.#waiting(source);
    const passed = source.length - waits;
    this.#rest = waits === 0 ? emptyBuffer : Buffer.from(source.subarray(passed));
    return this.#rewrite(source, passed);
  }

  /** Returns the bytes that waited. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = emptyBuffer;
    return rest.length === 0 ? rest : this.#rewrite(rest, rest.length);
  }

  /**
   * Number of bytes at the end that may be the start of a URL, including the character before it.
   */
  #waiting(source: Buffer): number {
    const { needles, longest } = this.#rules;
    const { length } = source;
    for (let at = source.indexOf(quote, Math.max(0, length - longest)); at >= 0; ) {
      const size = length - at;
      const begins = ({ from }: Needle): boolean =>
        size <= from.length && source.subarray(at).equals(from.subarray(0, size));
      if (needles.some(begins)) return size;
      at = source.indexOf(quote, at + 1);
    }
    return 0;
  }

  #rewrite(source: Buffer, end: number): Buffer {
    const pieces: Buffer[] = [];
    let done = 0;
    if (!this.finds(source, { start: 0, end: source.length })) {
      this.#remember(source, end);
      return end === source.length ? source : source.subarray(0, end);
    }
    for (let at = 0; ; ) {
      const found = this.#next(source, at, end);
      if (found === undefined) break;
      const { start, needle } = found;
      at = start + needle.from.length;
      if (!this.#isMeant(source, start, needle)) continue;
      pieces.push(source.subarray(done, start), needle.to);
      done = at;
    }
    this.#remember(source, end);
    if (done === 0) return end === source.length ? source : source.subarray(0, end);
    return joinBuffers([...pieces, source.subarray(done, end)]);
  }

  #next(
    source: Buffer,
    from: number,
    end: number,
  ): { readonly start: number; readonly needle: Needle } | undefined {
    let first: { readonly start: number; readonly needle: Needle } | undefined;
    for (const needle of this.#rules.needles) {
      const start = source.indexOf(needle.from, from);
      if (start < 0 || start + needle.from.length > end) continue;
      const isLonger = start === first?.start && needle.from.length > first.needle.from.length;
      if (first === undefined || start < first.start || isLonger) first = { start, needle };
    }
    return first;
  }

  /** Whether it is the value of a listed member, and not the prefix of a longer host. */
  #isMeant(source: Buffer, start: number, { from, members }: Needle): boolean {
    const after = source[start + from.length];
    if (after !== undefined && !boundaries.has(after)) return false;
    if (members === undefined) return true;
    const behind = Math.max(0, start - behindBytesMax);
    const before = source.toString("latin1", behind, start);
    const text = start >= behindBytesMax ? before : this.#behind.toString("latin1") + before;
    const [, name] = /"([^"\\]{1,64})"\s*:\s*$/.exec(text) ?? [];
    return name !== undefined && members.has(name);
  }

  #remember(source: Buffer, end: number): void {
    if (end === 0) return;
    const start = Math.max(0, end - behindBytesMax);
    const tail = source.subarray(start, end);
    this.#behind = Buffer.from(
      tail.length === behindBytesMax
        ? tail
        : joinBuffers([this.#behind, tail]).subarray(-behindBytesMax),
    );
  }
}

/** Rewrites bytes that arrived completely. */
export function rewriteAddresses(bytes: Buffer, edits: readonly AddressEdit[]): Buffer {
  const rewriter = new AddressRewriter(edits);
  const passed = rewriter.push(bytes);
  const rest = rewriter.end();
  return rest.length === 0 ? passed : joinBuffers([passed, rest]);
}

/** Rewrites a header that contains a URL and nothing else. */
export function rewriteHeader(value: string, edits: readonly AddressEdit[]): string {
  for (const { from, to } of edits) {
    const after = value.charCodeAt(from.length);
    const isMeant = value.length === from.length || (boundaries.has(after) && after !== colon);
    if (value.startsWith(from) && isMeant) return to + value.slice(from.length);
  }
  return value;
}

function rulesOf(edits: readonly AddressEdit[]): Rules {
  const same = known.get(edits);
  if (same !== undefined) return same;
  const needles = needlesOf(edits);
  const hosts = new Set(edits.map(({ from }) => new URL(from).host));
  const rules = {
    needles,
    longest: Math.max(0, ...needles.map(({ from }) => from.length)),
    hosts: [...hosts].map((host) => Buffer.from(host)),
  };
  known.set(edits, rules);
  return rules;
}

function needlesOf(edits: readonly AddressEdit[]): readonly Needle[] {
  const written = (address: string): Buffer =>
    Buffer.concat([Buffer.of(quote), Buffer.from(address)]);
  const escaped = (address: string): string => address.replaceAll("/", "\\/");
  return edits
    .filter(({ members }) => members?.size !== 0)
    .flatMap(({ from, to, members }) => [
      { from: written(from), to: written(to), members },
      { from: written(escaped(from)), to: written(escaped(to)), members },
    ]);
}
