/**
 * Texts of many kinds, cut into the tokens of a public tokenizer: what simulated vendors read and
 * write.
 */
import { readdirSync, readFileSync } from "node:fs";
import { decode, encode } from "gpt-tokenizer/encoding/o200k_base";

/** A piece of text that a stream can send: one token, or the few that share a character. */
export interface Piece {
  readonly text: string;
  readonly tokens: number;
}

/** The kinds of text, with how many of 100 replies have them. */
export const textKinds = {
  english: 54,
  code: 20,
  chinese: 14,
  json: 10,
  numbers: 2,
} as const;

export type TextKind = keyof typeof textKinds;

const root = new URL("../../../../", import.meta.url);

const sources: Readonly<Record<TextKind, () => string>> = {
  english: () => filesOf("docs/", ".md"),
  code: () => filesOf("src/calls/", ".ts"),
  chinese: () => filesOf("console/src/text/zh/", ".ts").replaceAll(/[\u0020-\u007e\n]+/g, ""),
  json: () => readFileSync(new URL("package.json", root), "utf8"),
  numbers: () => Array.from({ length: 4_000 }, (_, at) => ((at * 7_919) % 9_973) / 7).join(", "),
};

function filesOf(folder: string, extension: string): string {
  const at = new URL(folder, root);
  const names = readdirSync(at).filter((name) => name.endsWith(extension));
  return names
    .toSorted()
    .map((name) => readFileSync(new URL(name, at), "utf8"))
    .join("\n")
    .slice(0, 200_000);
}

const cut = new Map<TextKind, readonly Piece[]>();

/** A text of about this many tokens. @param at where it begins, from 0 to 1 */
export function textOf(kind: TextKind, { at, tokens }: { at: number; tokens: number }): Piece[] {
  let all = cut.get(kind);
  if (all === undefined) cut.set(kind, (all = cutText(sources[kind]())));
  const start = Math.floor(at * all.length);
  const pieces: Piece[] = [];
  for (let [i, left] = [start, tokens]; left > 0; i++) {
    const piece = all[i % all.length] as Piece;
    pieces.push(piece);
    left -= piece.tokens;
  }
  return pieces;
}

/** The tokens of pieces. */
export function tokensOf(pieces: readonly Piece[]): number {
  return pieces.reduce((sum, { tokens }) => sum + tokens, 0);
}

/** The tokens of a text as a whole: fewer than those of its pieces if a word was cut. */
export function countOf(pieces: readonly Piece[]): number {
  return encode(pieces.map(({ text }) => text).join("")).length;
}

/** Joins every `count` pieces into one, as vendors do that send several tokens at a time. */
export function joined(pieces: readonly Piece[], count: number): Piece[] {
  const longer: Piece[] = [];
  for (let at = 0; at < pieces.length; at += count) {
    const some = pieces.slice(at, at + count);
    longer.push({ text: some.map(({ text }) => text).join(""), tokens: tokensOf(some) });
  }
  return longer;
}

function cutText(text: string): Piece[] {
  const pieces: Piece[] = [];
  let open: number[] = [];
  for (const token of encode(text)) {
    open.push(token);
    const decoded = decode(open);
    // A character of several tokens.
    if (decoded.includes("\uFFFD") && open.length < 4) continue;
    pieces.push({ text: decoded, tokens: open.length });
    open = [];
  }
  return pieces;
}
