/**
 * The conversation selects the answer of a simulated vendor: the last text of the user's message,
 * or the tool results after it. A test therefore needs no access to the vendor to script it.
 *
 * | words | answer |
 * |---|---|
 * | `call NAME` | a call of that tool, with arguments that fit its schema (texts are `Bern`) |
 * | `call NAME with {…}` | a call of that tool with these arguments, one flat object |
 * | `call two tools` | two calls at once, `Bern` and `Paris`; one if parallel calls are off |
 * | `call twice` | a call, and after its result another |
 * | `json schema` | JSON that fits the requested schema |
 * | `think` | reasoning first, in the form of the style; combines with the others |
 * | `refuse`, `long` | a refusal; a text that ends at the token limit |
 * | `cut`, `error midstream`, `status 429` | a broken connection; an error event; a refusal by status |
 * | `odd ids`, `empty arguments`, `interleaved` | calls as hosts of open models make them (chat only) |
 * | `redacted` | thinking that is not shown (messages only) |
 * | `describe image` | media type and SHA-256 of each received image |
 * | `count reasoning` | number of returned reasoning blocks, in all turns |
 * | `echo settings`, `echo system` | the received values |
 * | anything else | a greeting |
 */
import { createHash } from "node:crypto";
import { sample } from "./strict-schema.ts";

/** A tool as any style offers it. */
export interface TurnTool {
  readonly name: string;
  readonly schema: unknown;
}

/** The parts of a request that a vendor of any style reads. */
export interface Turn {
  readonly model: string;
  readonly stream: boolean;
  /** The last text of the last user message. */
  readonly text: string;
  readonly system: string;
  readonly tools: readonly TurnTool[];
  /** `none`, `auto`, `required`, or the name of a tool. */
  readonly toolChoice: string;
  readonly parallel: boolean;
  /** Results of tools that came after the user's last text. */
  readonly results: readonly string[];
  /** Number of rounds of tool calls since then. */
  readonly rounds: number;
  /** `mime sha256` of each image in the last user message. */
  readonly images: readonly string[];
  /** The schema that the reply must fit; undefined if there is none. */
  readonly schema: unknown;
  /** Reasoning blocks in the whole conversation. */
  readonly reasoningBlocks: number;
  /** Other settings, by the style's names. */
  readonly settings: Readonly<Record<string, unknown>>;
}

/** A vendor's answer, in any style. */
export interface Play {
  /** Pieces of text. */
  readonly text: readonly string[];
  /** Pieces of reasoning, before the text. */
  readonly reasoning: readonly string[];
  readonly calls: ReadonlyArray<{ readonly name: string; readonly arguments: string }>;
  readonly end: "stop" | "calls" | "length" | "refusal";
  readonly failure:
    | { readonly kind: "status"; readonly status: number }
    | { readonly kind: "error" | "cut" }
    | undefined;
}

/** The greeting, in the pieces it is streamed in. */
export const greeting = ["Hello", " there,", " Grüße", " 🌍", "!"] as const;

/** The reasoning, in pieces. */
export const thoughts = ["First I look", " at the question,", " then I answer."] as const;

/** Tokens of every reply. */
export const tokens = { input: 24, cached: 8, written: 4, output: 15, reasoning: 5 } as const;

/** `mime sha256`, as `describe image` answers it. */
export function describeBytes(mime: string, bytes: Uint8Array): string {
  return `${mime} ${createHash("sha256").update(bytes).digest("hex")}`;
}

/** Decides what to say. */
export function playOf(turn: Turn): Play {
  const says = (words: RegExp): boolean => words.test(turn.text);
  const base: Play = {
    text: [],
    calls: [],
    end: "stop",
    failure: undefined,
    reasoning: says(/\bthink\b/i) && turn.results.length === 0 ? thoughts : [],
  };
  const status = /\bstatus (\d{3})\b/.exec(turn.text)?.[1];
  if (status) return { ...base, failure: { kind: "status", status: Number(status) } };
  const calls = callsOf(turn);
  if (calls.length > 0) return { ...base, calls, end: "calls" };
  if (turn.results.length > 0) {
    return { ...base, text: inPieces(`Tools said: ${turn.results.join(" | ")}`) };
  }
  if (says(/\bcut\b/)) return { ...base, text: greeting, failure: { kind: "cut" } };
  if (says(/\berror midstream\b/)) return { ...base, text: greeting, failure: { kind: "error" } };
  if (says(/\brefuse\b/))
    return { ...base, text: ["I cannot", " help with that."], end: "refusal" };
  if (says(/\blong\b/)) return { ...base, text: ["And then", " and then"], end: "length" };
  return { ...base, text: textOf(turn) };
}

function textOf(turn: Turn): readonly string[] {
  const { text } = turn;
  if (turn.schema !== undefined) return inPieces(JSON.stringify(sample(turn.schema, "Bern")));
  if (/\bdescribe image\b/.test(text)) return inPieces(turn.images.join("\n") || "no image");
  if (/\bcount reasoning\b/.test(text)) return [String(turn.reasoningBlocks)];
  if (/\becho settings\b/.test(text)) return inPieces(JSON.stringify(turn.settings));
  if (/\becho system\b/.test(text)) return inPieces(turn.system || "no system");
  if (/\bcall\b/.test(text)) return ["I have", " no such tool."];
  return greeting;
}

function callsOf(turn: Turn): Play["calls"] {
  const { text, tools, toolChoice } = turn;
  if (tools.length === 0 || toolChoice === "none") return [];
  const isTwice = /\bcall twice\b/.test(text);
  if (turn.rounds >= (isTwice ? 2 : 1)) return [];
  const isAsked = /\bcall\b/.test(text);
  if (!isAsked && toolChoice === "auto") return [];
  const spelled = spelledCall(turn);
  if (spelled !== undefined) return [spelled];
  const named =
    tools.find(({ name }) => name === toolChoice) ??
    tools.find(({ name }) => text.includes(name)) ??
    tools[0];
  if (named === undefined) return [];
  const call = (tool: TurnTool, word: string): Play["calls"][number] => ({
    name: tool.name,
    arguments: JSON.stringify(sample(tool.schema, word)),
  });
  if (/\bcall two tools\b/.test(text) && turn.parallel) {
    return [call(tools[0] ?? named, "Bern"), call(tools[1] ?? named, "Paris")];
  }
  return [call(named, turn.rounds === 0 ? "Bern" : "Paris")];
}

/** A call whose arguments are written in the text, for tools that run programs. */
function spelledCall({ text, tools }: Turn): Play["calls"][number] | undefined {
  const [, name = "", spelled = ""] = /\bcall (\S+) with (\{[^{}]*\})/.exec(text) ?? [];
  return tools.some((tool) => tool.name === name) ? { name, arguments: spelled } : undefined;
}

/** Cut so that no piece ends inside a character. */
export function inPieces(text: string, length = 9): string[] {
  const characters = Array.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < characters.length; at += length) {
    pieces.push(characters.slice(at, at + length).join(""));
  }
  return pieces;
}
