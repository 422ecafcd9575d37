/**
 * The property of sloppy vendors: a caller reads the same text, calls and usage as without a
 * quirk, and the same tokens are charged.
 */
import * as fc from "fast-check";
import { isDeepStrictEqual } from "node:util";
import {
  type CallerStyle,
  type ReadCall,
  readStream,
  readWhole,
  type Reading,
} from "./caller-reading.ts";
import { type Conversation, conversations } from "./conversation.ts";
import {
  isEvents,
  isRelayed,
  isStreamed,
  pass,
  type Passed,
  type Way,
  ways,
} from "./gateway-reading.ts";
import { type Quirk, quirks } from "./quirks/index.ts";
import {
  parseExactly,
  type VendorReply,
  vendorReply,
  type VendorStyle,
  writeEvents,
} from "./vendor-reply.ts";

/** A conversation whose vendor has quirks. */
export interface Sample {
  readonly way: Way;
  readonly conversation: Conversation;
  /** At most two. */
  readonly shown: readonly Quirk[];
  readonly pieceBytes: number;
}

/** Whether the caller can ask for custom tools. */
const hasCustomTools = ({ caller }: Way): boolean => caller !== "messages";

/** Any sample. @param only quirks with this text in their names. Default: all */
export function samples(only = ""): fc.Arbitrary<Sample> {
  return fc.constantFrom(...ways).chain((way) =>
    fc
      .record({
        conversation: conversations({
          hasRefusals: way.vendor === "chat" || way.vendor === "responses",
          hasCustomTools: hasCustomTools(way),
          hasCacheWrites: way.vendor !== "gemini",
        }),
        first: fc.nat(),
        second: fc.option(fc.nat()),
        pieceBytes: fc.constantFrom(1, 7, 100, 1_000_000),
      })
      .map(({ conversation, first, second, pieceBytes }) => {
        const able = quirks[way.vendor].filter((quirk) => canShow(quirk, way, conversation));
        const named = able.filter(({ name }) => name.includes(only));
        const other = second === null ? undefined : able[second % able.length];
        const shown = compatible(named[first % named.length], other);
        return { way, conversation, shown, pieceBytes };
      }),
  );
}

/** Whether a vendor can show a quirk in a conversation. */
function canShow({ suits, ...quirk }: Quirk, way: Way, of: Conversation): boolean {
  const edits = isEvents(way) ? [quirk.stream, quirk.streamText] : [quirk.whole, quirk.wholeText];
  return edits.some((edit) => edit !== undefined) && (suits?.(of) ?? true);
}

/** Quirks about the same thing replace each other. */
function compatible(first: Quirk | undefined, second: Quirk | undefined): readonly Quirk[] {
  if (first === undefined) return [];
  const isSame = subjectsOf(first).some((each) => subjectsOf(second).includes(each));
  return second === undefined || second === first || isSame ? [first] : [first, second];
}

function subjectsOf(quirk: Quirk | undefined): readonly string[] {
  return [quirk?.about ?? []].flat();
}

/** The body that the vendor sends. */
export function bodyOf({ way, conversation, shown }: Omit<Sample, "pieceBytes">): string {
  const reply = vendorReply(way.vendor, conversation);
  return isEvents(way)
    ? streamOf(way.vendor, reply, shown, conversation)
    : wholeOf(reply, shown, conversation);
}

function streamOf(
  style: VendorStyle,
  { events }: VendorReply,
  shown: readonly Quirk[],
  of: Conversation,
): string {
  const changed = shown.reduce((all, { stream }) => stream?.(all, of) ?? all, events);
  const text = writeEvents(style, changed);
  return shown.reduce((all, { streamText }) => streamText?.(all) ?? all, text);
}

function wholeOf({ whole }: VendorReply, shown: readonly Quirk[], of: Conversation): string {
  const changed = shown.reduce((all, quirk) => quirk.whole?.(all, of) ?? all, whole);
  return shown.reduce((all, { wholeText }) => wholeText?.(all) ?? all, JSON.stringify(changed));
}

/** A caller's reading, and the charge. */
interface Outcome {
  readonly read: Omit<Reading, "calls"> & { readonly calls: readonly Omit<ReadCall, "id">[] };
  readonly usage: Passed["usage"];
}

/**
 * Checks a sample.
 *
 * @returns what is wrong, and the vendor's body; undefined if there is nothing
 */
export function fault(sample: Sample): string | undefined {
  const { way, conversation, pieceBytes } = sample;
  const body = bodyOf(sample);
  const plain = pass(way, bodyOf({ ...sample, shown: [] }), pieceBytes);
  const expected = outcomeIn(way, plain);
  const wrong =
    plain.uncountedTextBytes > 0
      ? `charges ${plain.uncountedTextBytes} bytes besides`
      : isOf(expected, conversation, way);
  if (wrong !== undefined) return `without a quirk: ${wrong}`;
  let got: Outcome;
  let passed: Passed | undefined;
  try {
    passed = pass(way, body, pieceBytes);
    if (passed.uncountedTextBytes > 0) {
      return report(`charges ${passed.uncountedTextBytes} bytes besides`, body, passed.body);
    }
    if (isRelayed(way)) return relayFault({ passed, body, expected, way });
    if (!passed.isFinished) return report("is not finished", body, passed.body);
    got = outcomeIn(way, passed);
  } catch (error) {
    return report(`throws ${String(error)}`, body, passed?.body ?? "");
  }
  if (isDeepStrictEqual(got, expected)) return undefined;
  const [has, should] = [got, expected].map((each) => JSON.stringify(each));
  return report(`reads\n${has}\nin place of\n${should}`, body, passed.body);
}

function report(what: string, body: string, out: string): string {
  return `${what}\nVENDOR\n${body}\nCALLER\n${out}`;
}

interface Relayed {
  readonly passed: Passed;
  readonly body: string;
  readonly expected: Outcome;
  readonly way: Way;
}

/**
 * A relay passes what its vendor sends: only the charge must be the same, and that the reply is
 * complete.
 */
function relayFault({ passed, body, expected, way }: Relayed): string | undefined {
  const { usage, isFinished, textBytes } = passed;
  if (!isFinished) return report("is not finished", body, passed.body);
  if (!isDeepStrictEqual(usage, expected.usage)) {
    const [has, should] = [usage, expected.usage].map((each) => JSON.stringify(each));
    return report(`charges ${has} in place of ${should}`, body, passed.body);
  }
  if (expected.read.text !== "" && textBytes === 0) return report("counts no text", body, "");
  const [sent, got] = [body, passed.body].map((each) => relayReading(way, each));
  if (sent === got || sent === undefined) return undefined;
  return report(`relays\n${got}\nin place of\n${sent}`, body, passed.body);
}

/**
 * Returns a caller's reading of a relayed reply; undefined if it is invalid. A repeated input is
 * passed on once, and an empty object before the input is left out.
 */
function relayReading(way: Way, body: string): string | undefined {
  try {
    const { calls, ...read } = readerOf(way)(way.caller, body);
    const inputOf = way.caller === "chat" ? inputOnce : (input: string) => input;
    const once = calls.map((call) => ({ ...call, input: inputOf(withoutEmpty(call.input)) }));
    return JSON.stringify({ ...read, calls: once });
  } catch {
    return undefined;
  }
}

/** An input without the empty object that some vendors send first. */
function withoutEmpty(input: string): string {
  return input.replace(/^\s*\{\s*\}\s*(?=\{)/, "");
}

/** The first of two equal objects that are joined. */
function inputOnce(input: string): string {
  for (let at = input.indexOf("}{"); at >= 0; at = input.indexOf("}{", at + 1)) {
    const [first, second] = [input.slice(0, at + 1), input.slice(at + 1)];
    try {
      if (isDeepStrictEqual(JSON.parse(first), JSON.parse(second))) return first;
    } catch {
      // It is split elsewhere.
    }
  }
  return input;
}

function readerOf(way: Way): (caller: CallerStyle, body: string) => Reading {
  return isStreamed(way) ? readStream : readWhole;
}

/** Ids may differ, as vendors leave them out: each call must have its own. */
function outcomeIn(way: Way, { body, usage }: Passed): Outcome {
  const { calls, ...read } = readerOf(way)(way.caller, body);
  const ids = new Set(calls.map(({ id }) => id));
  if (ids.size !== calls.length || ids.has("")) throw new Error("ids of calls are not unique");
  return { read: { ...read, calls: calls.map(meaningOf) }, usage };
}

/**
 * A call without its id. Vendors escape characters in one way or another, but all keep the digits
 * of numbers.
 */
export function meaningOf({ name, input }: Omit<ReadCall, "id">): Omit<ReadCall, "id"> {
  try {
    return { name, input: JSON.stringify(parseExactly(input)) };
  } catch {
    return { name, input };
  }
}

/** Compares an outcome with the conversation itself. */
function isOf({ read, usage }: Outcome, of: Conversation, way: Way): string | undefined {
  const { tokens, text, refusal, calls, reasoning } = of;
  if (read.error !== "") return `error ${read.error}`;
  const said = way.caller === "messages" ? read.text : read.text + read.refusal;
  if (refusal === "" && said !== text) return `text ${JSON.stringify(read.text)}`;
  if (refusal !== "" && way.caller !== "messages" && said !== refusal) {
    return `refusal ${JSON.stringify(read)}`;
  }
  if (read.reasoning !== reasoning) return `reasoning ${JSON.stringify(read.reasoning)}`;
  const should = calls.map(meaningOf);
  if (!isDeepStrictEqual(read.calls, should)) {
    return `calls ${JSON.stringify([read.calls, should])}`;
  }
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } =
    usage ?? {};
  const counts = [inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens];
  const { input, cached, written, output, reasoning: thought } = tokens;
  const right = [input, cached, written, output, thought];
  return isDeepStrictEqual(counts, right) ? undefined : `usage ${JSON.stringify([counts, right])}`;
}

/** Describes a sample in a report. */
export function nameOf({ way, shown, pieceBytes }: Sample): string {
  const names = shown.map(({ name }) => name).join("; and ");
  return `${way.vendor} to ${way.caller}, ${way.form}, in pieces of ${pieceBytes}: the vendor ${names}`;
}
