/**
 * Replaces addresses in JSON without parsing it: `"uri": "https://vendor/v1/x"` becomes `"uri": "https://us/gemini/v1/x"`
 * where the member is one of those named, and nothing else changes. Parsed and written again, 64-bit numbers,
 * `-0.10` and white space would not be what they were; and what a model says about an address is its own text.
 */
import { joinBuffers, emptyBuffer } from "../../core/bytes.ts";

/** One address that stands in place of another. Both without a trailing slash. */
export interface AddressEdit {
  readonly from: string;
  readonly to: string;
  /** The members whose value may be such an address. Absent: any. */
  readonly members?: ReadonlySet<string>;
}

/** What an address looks like in JSON: some writers escape every slash. */
interface Needle {
  readonly from: Buffer;
  readonly to: Buffer;
  readonly members: ReadonlySet<string> | undefined;
}

/** What may stand behind an address: its path, a query or the end of the text. */
const boundaries = new Set(['"', "/", "\\", "?", ":"].map((sign) => sign.charCodeAt(0)));
const quote = 0x22;
const colon = 0x3a;

/** How much of what was passed on is remembered for the name of a member, in bytes. */
const behindBytesMax = 256;

/** Rewrites bytes that come in pieces cut anywhere. What may be the beginning of an address waits for the rest. */
export class AddressRewriter {
  readonly #needles: readonly Needle[];
  readonly #longest: number;
  /** What addresses have in common however they are written: looked for first, at half the price. */
  readonly #hosts: readonly Buffer[];
  /** The end of what was passed on, as it came. */
  #behind: Buffer = emptyBuffer;
  /** What waits. */
  #rest: Buffer = emptyBuffer;

  constructor(edits: readonly AddressEdit[]) {
    this.#needles = needlesOf(edits);
    this.#hosts = [...new Set(edits.map(({ from }) => new URL(from).host))].map((host) =>
      Buffer.from(host),
    );
    this.#longest = Math.max(0, ...this.#needles.map(({ from }) => from.length));
  }

  /** Whether there may be an address. A search is all that it costs. */
  finds(bytes: Buffer, { start, end }: { readonly start: number; readonly end: number }): boolean {
    const part = start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
    return this.#hosts.some((host) => part.includes(host));
  }

  /** What can be passed on of it. A piece without any address is passed on as it is. */
  push(piece: Buffer): Buffer {
    if (this.#needles.length === 0) return piece;
    const source = this.#rest.length === 0 ? piece : joinBuffers([this.#rest, piece]);
    const waits = this.#waiting(source);
    const passed = source.length - waits;
    this.#rest = waits === 0 ? emptyBuffer : Buffer.from(source.subarray(passed));
    return this.#rewrite(source, passed);
  }

  /** What waited. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = emptyBuffer;
    return rest.length === 0 ? rest : this.#rewrite(rest, rest.length);
  }

  /** How many bytes at the end may be the beginning of an address, with the byte behind it. */
  #waiting(source: Buffer): number {
    const { length } = source;
    for (let at = source.indexOf(quote, Math.max(0, length - this.#longest)); at >= 0; ) {
      const size = length - at;
      const begins = ({ from }: Needle): boolean =>
        size <= from.length && source.subarray(at).equals(from.subarray(0, size));
      if (this.#needles.some(begins)) return size;
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
    for (const needle of this.#needles) {
      const start = source.indexOf(needle.from, from);
      if (start < 0 || start + needle.from.length > end) continue;
      const isLonger = start === first?.start && needle.from.length > first.needle.from.length;
      if (first === undefined || start < first.start || isLonger) first = { start, needle };
    }
    return first;
  }

  /** Whether it is the value of a member that is named, and not the beginning of a longer host. */
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

/** Rewrites bytes that came whole. */
export function rewriteAddresses(bytes: Buffer, edits: readonly AddressEdit[]): Buffer {
  const rewriter = new AddressRewriter(edits);
  const passed = rewriter.push(bytes);
  const rest = rewriter.end();
  return rest.length === 0 ? passed : joinBuffers([passed, rest]);
}

/** An address in a header: all of it, or nothing. */
export function rewriteHeader(value: string, edits: readonly AddressEdit[]): string {
  for (const { from, to } of edits) {
    const after = value.charCodeAt(from.length);
    const isMeant = value.length === from.length || (boundaries.has(after) && after !== colon);
    if (value.startsWith(from) && isMeant) return to + value.slice(from.length);
  }
  return value;
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
