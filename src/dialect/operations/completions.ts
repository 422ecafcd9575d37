/**
 * Legacy completions in OpenAI's form: `{model, prompt}` in, `{choices: [{text}]}` out, whole or as
 * events.
 */
import { bytesPerToken } from "../../core/limits.ts";
import { asBuffer, emptyBuffer } from "../../core/bytes.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import {
  applyEdits,
  knownMembers,
  type Members,
  missing,
  type ModelBody,
  pickMembers,
  readBoolean,
  readCount,
  readModel,
  readOutline,
  textOf,
} from "../body-members.ts";
import { decodeUsage } from "../chat-completions/usage.ts";
import { errorBody } from "../codec.ts";
import type { RelayedReply, RelayOptions } from "../dialect.ts";
import { refuseMembers, vendorMembers } from "../features/billed-features.ts";
import { checkServiceTier } from "../features/guard.ts";
import { type Outline, sliceText } from "../../wire/json/outline.ts";
import { ObjectScan } from "../../wire/json/scan.ts";
import { changeMembers } from "../../wire/json/source.ts";
import type { Edit } from "../../wire/json/splice.ts";
import {
  countAt,
  isRecord,
  type JsonRecord,
  parseRecord,
  recordsAt,
  textAt,
} from "../../wire/json/value.ts";
import { classed, namesToCheck } from "../features/member-class.ts";
import { grownUsage } from "../features/usage.ts";
import { emptyStream, hasError, refuseErrorReply } from "../vendor-error.ts";
import { EventRelay, restoreReplyModel } from "../event-relay.ts";

/** A request for a completion. */
export interface CompletionBody extends ModelBody {
  readonly stream: boolean;
  /** Whether the client requested usage in the stream. */
  readonly wantsUsage: boolean;
  /** The client's limit on tokens per choice; `undefined` for none. */
  readonly maxOutputTokens: number | undefined;
  /** The choices in the reply: `n` for each prompt. */
  readonly choices: number;
  /** The choices that the vendor makes and charges: `best_of`, if it is more than `n`. */
  readonly made: number;
  /**
   * Bytes of each prompt that the vendor repeats before its own text, by `echo`; empty means it
   * repeats none.
   */
  readonly echoed: readonly number[];
}

const choicesMax = 128;

/** The most prompts of one request, as with OpenAI. */
const promptsMax = 2_048;

/**
 * The members of a request (R-TXT-13), and of compatible vendors those that run tools or choose a
 * model or host.
 */
export const completionsMembers = {
  ...classed(
    "free",
    `
    best_of echo frequency_penalty logit_bias logprobs max_tokens model n presence_penalty prompt
    seed stop stream stream_options suffix temperature top_p user
    `,
  ),
  ...classed("refused", [...vendorMembers, "models", "provider"].join(" ")),
} as const;

/** The members below them. */
export const completionsNested = classed("free", "include_obfuscation include_usage");

const refused = namesToCheck(completionsMembers);

const known = knownMembers([
  ...refused,
  "model",
  "prompt",
  "n",
  "best_of",
  "echo",
  "max_tokens",
  "stream",
  "stream_options",
  "service_tier",
]);

/**
 * Reads a request.
 *
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readCompletionBody(body: Uint8Array): CompletionBody {
  const bytes = asBuffer(body);
  const outline = readOutline(bytes);
  const members = pickMembers(outline, known);
  const model = readModel(bytes, members, "model");
  const prompts = promptSizes(bytes, members);
  const n = readCount(bytes, members, "n", { max: choicesMax }) ?? 1;
  const bestOf = readCount(bytes, members, "best_of", { max: choicesMax }) ?? n;
  checkServiceTier(JSON.parse(textOf(bytes, members, "service_tier") ?? "null"));
  const sent = refused.map((name) => [name, JSON.parse(textOf(bytes, members, name) ?? "null")]);
  refuseMembers(Object.fromEntries(sent) as JsonRecord, refused);
  const stream = readBoolean(bytes, members, "stream");
  const options = streamOptions(textOf(bytes, members, "stream_options"));
  const read = { bytes, outline, members, stream, options };
  return {
    model,
    bytes,
    stream,
    wantsUsage: stream && options["include_usage"] === true,
    maxOutputTokens: readCount(bytes, members, "max_tokens", { min: 0 }),
    choices: prompts.length * n,
    made: prompts.length * Math.max(n, bestOf),
    echoed: readBoolean(bytes, members, "echo") ? prompts : [],
    forVendor: (vendorModel) => applyEdits(bytes, editsFor(read, vendorModel)),
  };
}

/**
 * The bytes of each prompt, estimated for lists of tokens. A text or a list of tokens is one
 * prompt.
 */
function promptSizes(bytes: Buffer, members: Members): number[] {
  const json = textOf(bytes, members, "prompt");
  if (json === undefined) throw missing(members, ["prompt"], "send a text to continue");
  const prompt: unknown = JSON.parse(json);
  if (typeof prompt === "string") return [promptBytes(prompt)];
  const isList = Array.isArray(prompt) && prompt.length > 0;
  if (isList && prompt.every(isToken)) return [promptBytes(prompt)];
  const areAllAlike =
    isList && (prompt.every((each) => typeof each === "string") || prompt.every(isTokenList));
  if (!areAllAlike) {
    throw invalid("prompt", '"prompt" must be a text, a list of tokens, or a list of either');
  }
  if (prompt.length > promptsMax) {
    throw invalid("prompt", `"prompt" must have at most ${promptsMax} texts`);
  }
  return prompt.map(promptBytes);
}

function promptBytes(prompt: unknown): number {
  if (typeof prompt === "string") return Buffer.byteLength(prompt);
  return Array.isArray(prompt) ? prompt.length * bytesPerToken : 0;
}

function isToken(value: unknown): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0;
}

function isTokenList(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isToken);
}

function streamOptions(json: string | undefined): Readonly<Record<string, unknown>> {
  const options: unknown = JSON.parse(json ?? "{}");
  if (isRecord(options)) return options;
  throw invalid("stream_options", '"stream_options" must be an object');
}

interface ReadBody {
  readonly bytes: Buffer;
  readonly outline: Outline;
  readonly members: Members;
  readonly stream: boolean;
  readonly options: Readonly<Record<string, unknown>>;
}

/** Sets the vendor's model name, and requests usage in every stream, because billing needs it. */
function editsFor({ bytes, outline, members, stream, options }: ReadBody, model: string): Edit[] {
  const edits: Edit[] = [];
  const named = members.get("model");
  if (named !== undefined) {
    edits.push({ start: named.valueStart, end: named.valueEnd, text: JSON.stringify(model) });
  }
  if (!stream || options["include_usage"] === true) return edits;
  const sent = members.get("stream_options");
  const given = sent === undefined ? "" : sliceText(bytes, sent);
  const text = changeMembers(given, { include_usage: "true" });
  if (sent !== undefined) edits.push({ start: sent.valueStart, end: sent.valueEnd, text });
  else edits.push({ start: outline.end, end: outline.end, text: `,"stream_options":${text}` });
  return edits;
}

/** Reads the usage of a whole reply, and restores the public model name in it. */
export function relayCompletion(body: Buffer, options: CompletionRelayOptions): RelayedReply {
  const scan = new ObjectScan().scan(body, 0, body.length);
  refuseErrorReply(scan, "choices");
  const usage = scan.value("usage");
  const choices = recordsAt({ choices: scan.value("choices") }, "choices");
  const text = new GeneratedText(options);
  return {
    body: restoreReplyModel(body, scan, options),
    usage: isRecord(usage) ? decodeUsage(usage, scan.value("service_tier")) : undefined,
    textBytes: choices.reduce((sum, choice) => sum + text.bytesOf(choice), 0),
  };
}

/** Options for relaying completions. */
export interface CompletionRelayOptions extends RelayOptions, Pick<CompletionBody, "echoed"> {}

/**
 * Measures the text that a vendor generated: without the prompts that it repeats, which are input.
 */
class GeneratedText {
  readonly #echoed: readonly number[];
  readonly #perPrompt: number;
  /** By choice: bytes of its prompt that are still to come. */
  readonly #left = new Map<number, number>();

  constructor({ echoed, choices }: CompletionRelayOptions) {
    this.#echoed = echoed;
    this.#perPrompt = Math.max(1, choices / Math.max(1, echoed.length));
  }

  bytesOf(choice: JsonRecord): number {
    const bytes = Buffer.byteLength(textAt(choice, "text"));
    if (this.#echoed.length === 0) return bytes;
    const index = countAt(choice, "index") ?? 0;
    const left = this.#left.get(index) ?? this.#echoed[Math.floor(index / this.#perPrompt)] ?? 0;
    this.#left.set(index, Math.max(0, left - bytes));
    return Math.max(0, bytes - left);
  }
}

/**
 * Relays events: chunks with texts, usage that only the gateway asked for taken out, and `[DONE]`.
 */
export class CompletionStreamRelay extends EventRelay {
  readonly #options: CompletionRelayOptions;
  readonly #text: GeneratedText;
  readonly #event = new ObjectScan();
  #openChoices: number;
  #first: Readonly<Record<string, unknown>> | undefined;

  constructor(options: CompletionRelayOptions) {
    super(options);
    this.#options = options;
    this.#text = new GeneratedText(options);
    this.#openChoices = options.choices;
  }

  protected failureEvent(error: GatewayError): Buffer {
    return Buffer.from(`data: ${JSON.stringify(errorBody(error))}\n\n`);
  }

  /** Ends the first choice at its length, which is what the amount held allows. */
  protected stopEvents(): Buffer {
    if (this.#options.choices > 1) {
      const text = "Insufficient balance: the amount that was set aside for this call is used up";
      return this.failureEvent(new GatewayError(ErrorCode.INSUFFICIENT_BALANCE, text));
    }
    const { id, object = "text_completion", created, model } = this.#first ?? {};
    const choices = [{ text: "", index: 0, logprobs: null, finish_reason: "length" }];
    const { publicModel = model } = this.#options;
    const chunk = { id, object, created, model: publicModel, choices };
    return Buffer.from(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
  }

  override push(pieces: readonly Buffer[]): Buffer {
    // Nothing follows an error, in particular no terminal event.
    return this.failed ? emptyBuffer : super.push(pieces);
  }

  /** The end of the stream, or a failure if nothing came before it. */
  #onDone(): void {
    if (this.#first !== undefined) this.finished = this.done = true;
    else {
      this.failed = true;
      this.replaceEvent(this.failureEvent(emptyStream()));
    }
  }

  protected onData(bytes: Buffer, start: number, end: number): void {
    if (bytes.toString("latin1", start, end).trim() === "[DONE]") {
      this.#onDone();
      return;
    }
    const event = this.#event.scan(bytes, start, end);
    if (hasError(event) || event.is("object", "error")) this.failed = true;
    const record = parseRecord(bytes.toString("utf8", start, end)) ?? {};
    this.#first ??= record;
    const choices = recordsAt(record, "choices");
    for (const choice of choices) {
      this.textBytes += this.#text.bytesOf(choice);
      if (textAt(choice, "finish_reason") !== "") this.#openChoices -= 1;
    }
    if (this.#openChoices <= 0) this.finished = true;
    const { usage } = record;
    const read = isRecord(usage) ? decodeUsage(usage, record["service_tier"]) : undefined;
    if (read !== undefined) this.usage = grownUsage(this.usage, read);
    const isInjected = this.#options.hideUsage && isRecord(usage) && choices.length === 0;
    if (isInjected) this.hideEvent();
    else this.restoreModel(event);
  }
}
