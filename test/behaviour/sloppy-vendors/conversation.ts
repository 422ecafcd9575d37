/** Conversations that a vendor's reply can be, without any style. */
import * as fc from "fast-check";

/** A call of one of the caller's tools. */
export interface Call {
  readonly id: string;
  readonly name: string;
  /** Arguments as JSON without space, or the free text of a custom tool. */
  readonly input: string;
  readonly isCustom: boolean;
}

/** Why the model stopped. */
export type Ending = "usual" | "limit";

/** Tokens. */
export interface Tokens {
  /** All of the input: cached and written tokens are among them. */
  readonly input: number;
  readonly cached: number;
  readonly written: number;
  /** All of the output: reasoning is among it. */
  readonly output: number;
  readonly reasoning: number;
}

/** The model's reply. Empty texts are absent. */
export interface Conversation {
  readonly reasoning: string;
  readonly text: string;
  readonly refusal: string;
  readonly calls: readonly Call[];
  readonly ending: Ending;
  readonly tokens: Tokens;
  /** The length of the pieces that a stream cuts texts into, in characters. */
  readonly pieceChars: number;
}

/**
 * Features of a conversation beyond text. A style of a vendor or a caller may lack some of them.
 */
export interface Features {
  readonly hasRefusals: boolean;
  readonly hasCustomTools: boolean;
  readonly hasCacheWrites: boolean;
}

/** The tools of each request. */
export const toolNames = { functions: ["read_file", "list_dir", "run"], custom: "apply_patch" };

const words = fc.constantFrom(
  "Hello",
  " and ",
  "\n\n",
  "“quoted”",
  '"',
  "\\n",
  "{}",
  "日本語",
  "👩‍💻",
  "data: [DONE]",
  "\u2028",
  "null",
  "<b>",
  "1e400",
);

/** A text that is neither empty nor blank. */
const someText = fc
  .array(words, { minLength: 1, maxLength: 8 })
  .map((each) => each.join(""))
  .filter((text) => text.trim() !== "");

const maybeText = fc.option(someText, { nil: "", freq: 2 });

/** Numbers that a parser would change are among the values. */
const values = fc.constantFrom(
  "2512292042121000001",
  "1.10",
  "1e2",
  "-0",
  "true",
  "null",
  '"a"',
  '"{}"',
  '"é\\"\\n"',
  '"日本"',
  "[]",
  "{}",
  "[1,{}]",
  '{"deep":{"er":[0.50]}}',
);
const names = fc.constantFrom("path", "id", "input", "a b", "line", "__proto__", "é");

/** The text of an object of arguments. */
const argumentsText = fc
  .uniqueArray(fc.tuple(names, values), { maxLength: 3, selector: ([name]) => name })
  .map((members) => `{${members.map(([name, json]) => `"${name}":${json}`).join(",")}}`);

function callsOf({ hasCustomTools }: Features): fc.Arbitrary<readonly Call[]> {
  const name = fc.constantFrom(...toolNames.functions);
  const call = fc.record({ name, input: argumentsText, isCustom: fc.constant(false) });
  const custom = someText.map((input) => ({ name: toolNames.custom, input, isCustom: true }));
  const any = hasCustomTools ? fc.oneof({ weight: 4, arbitrary: call }, custom) : call;
  return fc
    .oneof(
      { weight: 2, arbitrary: fc.constant([]) },
      { weight: 3, arbitrary: fc.array(any, { minLength: 1, maxLength: 3 }) },
    )
    .map((calls) => calls.map((each, place) => ({ ...each, id: `call_${place}abc` })));
}

function tokensOf({ hasCacheWrites }: Features): fc.Arbitrary<Tokens> {
  const few = fc.constantFrom(0, 0, 7, 100);
  return fc
    .tuple(fc.constantFrom(1, 20, 1_000), few, hasCacheWrites ? few : fc.constant(0), few, few)
    .map(([fresh, cached, written, visible, reasoning]) => ({
      input: fresh + cached + written,
      cached,
      written,
      output: visible + 1 + reasoning,
      reasoning,
    }));
}

/** Any conversation of a vendor with these features. */
export function conversations(features: Features): fc.Arbitrary<Conversation> {
  return fc
    .record({
      reasoning: maybeText,
      text: maybeText,
      refusal: features.hasRefusals
        ? fc.oneof({ weight: 7, arbitrary: fc.constant("") }, { weight: 1, arbitrary: someText })
        : fc.constant(""),
      calls: callsOf(features),
      ending: fc.constantFrom<Ending>("usual", "usual", "usual", "limit"),
      tokens: tokensOf(features),
      pieceChars: fc.constantFrom(1, 3, 1_000),
    })
    .map(completed);
}

/** A reply says something; one that refuses says nothing else. */
function completed(all: Conversation): Conversation {
  const { text, calls, tokens, reasoning, refusal, ending } = all;
  if (refusal !== "") return { ...all, text: "", calls: [], ending: "usual" };
  const hasContent = text !== "" || calls.length > 0;
  return {
    ...all,
    text: hasContent ? text : "Yes.",
    // A reply that was cut ends in a text, so that its calls are whole.
    ending: calls.length > 0 ? "usual" : ending,
    tokens: reasoning === "" ? { ...tokens, reasoning: 0, output: tokens.output } : tokens,
  };
}

/** Cuts a text into pieces. No piece has half a character: vendors send whole tokens of text. */
export function piecesOf(text: string, { pieceChars }: Pick<Conversation, "pieceChars">): string[] {
  const chars = Array.from(text);
  const pieces: string[] = [];
  for (let at = 0; at < chars.length; at += pieceChars) {
    pieces.push(chars.slice(at, at + pieceChars).join(""));
  }
  return pieces;
}
