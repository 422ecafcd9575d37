/** What the demo vendor answers: chat completions, computed from the request alone. */
import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord, recordsAt, textAt } from "../../wire/json/value.ts";
import {
  flagMember,
  numberMember,
  readBody,
  recordMember,
  refuse,
  requireKnown,
  requireModel,
} from "./request.ts";
import { valueOf } from "./schema-value.ts";

/** An answer, in both forms. */
export interface DemoReply {
  readonly model: string;
  readonly stream: boolean;
  /** The reply as one object. */
  readonly whole: () => JsonRecord;
  /** The reply as stream chunks, the usage chunk last where it was asked for. */
  readonly chunks: () => Iterable<JsonRecord>;
}

const roles = new Set(["system", "developer", "user", "assistant", "tool", "function"]);

/** Members that are taken; those that change nothing here are settings of real models. */
const known = new Set(
  `model messages stream stream_options max_tokens max_completion_tokens n logprobs top_logprobs response_format tools
  tool_choice parallel_tool_calls stop temperature top_p top_k presence_penalty frequency_penalty seed user metadata store
  logit_bias reasoning_effort reasoning verbosity service_tier safety_identifier prompt_cache_key
  prompt_cache_retention`.split(/\s+/),
);

/** Answers a request body. @throws DemoRequestError */
export function replyTo(json: string): DemoReply {
  const body = readBody(json);
  const model = requireModel(body, ["chat", "instant"]);
  requireKnown(body, known);
  const messages = readMessages(body);
  checkSettings(body);
  const tools = readTools(body);
  const count = numberMember(body, "n", { least: 1, most: 128, isWhole: true }) ?? 1;
  const topLogprobs = readLogprobs(body);
  const choices = Array.from({ length: count }, (_none, index) =>
    choiceOf({ body, messages, tools }, { index, count }),
  );
  const { include_usage: wantsUsage } = recordMember(body, "stream_options") ?? {};
  const parts: ChatParts = {
    head: {
      id: `chatcmpl-demo-${randomUUID().replaceAll("-", "").slice(0, 24)}`,
      created: Math.floor(Date.now() / 1_000),
      model,
    },
    choices,
    usage: usageOf(messages, choices),
    topLogprobs,
    wantsUsage: wantsUsage === true,
  };
  return {
    model,
    stream: flagMember(body, "stream"),
    whole: () => wholeOf(parts),
    chunks: () => chunksOf(parts),
  };
}

function readMessages(body: JsonRecord): readonly JsonRecord[] {
  const { messages } = body;
  if (!Array.isArray(messages) || messages.length === 0) {
    throw refuse("messages", "expected at least one message");
  }
  return messages.map((message: unknown, at) => {
    if (!isRecord(message) || !roles.has(textAt(message, "role"))) {
      throw refuse(`messages[${at}].role`, `expected one of ${[...roles].join(", ")}`);
    }
    if (!hasContent(message)) {
      throw refuse(`messages[${at}].content`, "expected a text or a list of parts");
    }
    return message;
  });
}

/** Whether a message has a content; an assistant's may be a tool call or a refusal instead. */
function hasContent({ role, content }: JsonRecord): boolean {
  if (content == null) return role === "assistant" || role === "function";
  return typeof content === "string" || (Array.isArray(content) && content.every(isRecord));
}

/** Checks what changes nothing here, as a real vendor would. */
function checkSettings(body: JsonRecord): void {
  numberMember(body, "temperature", { least: 0, most: 2 });
  numberMember(body, "top_p", { least: 0, most: 1 });
  numberMember(body, "presence_penalty", { least: -2, most: 2 });
  numberMember(body, "frequency_penalty", { least: -2, most: 2 });
}

function readLogprobs(body: JsonRecord): number | undefined {
  const top = numberMember(body, "top_logprobs", { least: 0, most: 20, isWhole: true });
  if (flagMember(body, "logprobs")) return top ?? 0;
  if (top === undefined) return undefined;
  throw refuse("top_logprobs", 'send "logprobs": true with it');
}

interface Asked {
  readonly body: JsonRecord;
  readonly messages: readonly JsonRecord[];
  readonly tools: readonly JsonRecord[];
}

interface Place {
  readonly index: number;
  readonly count: number;
}

function choiceOf(asked: Asked, place: Place): DemoChoice {
  const { body } = asked;
  const range = { least: 1, most: 2 ** 31 - 1, isWhole: true };
  const limit =
    numberMember(body, "max_completion_tokens", range) ?? numberMember(body, "max_tokens", range);
  const call = toolCall(asked);
  const text = call?.arguments ?? atStop(formatted(asked, place), body["stop"]);
  const all = wordsIn(text);
  const words = all.slice(0, limit);
  if (words.length < all.length) return { words, call, finish: "length" };
  return { words, call, finish: call === undefined ? "stop" : "tool_calls" };
}

/** Its tokens: words with the space behind them. Long ones are several, as no tokenizer has a token of over 128 bytes. */
function wordsIn(text: string): readonly string[] {
  return text.match(/\S{1,31}\s?|\s/gu) ?? [];
}

/** The text in the form that the request asks for. */
function formatted({ body, messages }: Asked, { index, count }: Place): string {
  const sentence = `${say(messages)}${count > 1 ? ` (Choice ${index + 1} of ${count}.)` : ""}`;
  const format = recordMember(body, "response_format");
  const type = format?.["type"] ?? "text";
  if (type === "text") return sentence;
  if (type === "json_object") return JSON.stringify({ answer: sentence });
  if (type !== "json_schema") {
    throw refuse("response_format.type", "expected text, json_object or json_schema");
  }
  const { json_schema: wrapped } = format ?? {};
  const param = "response_format.json_schema.schema";
  if (!isRecord(wrapped)) throw refuse("response_format.json_schema", "expected an object");
  return JSON.stringify(valueOf(wrapped["schema"], { text: questionOf(messages), param }));
}

/** The text before the first stop sequence. @throws DemoRequestError */
export function atStop(text: string, stop: unknown): string {
  const stops = (Array.isArray(stop) ? stop : [stop ?? []]).flat() as readonly unknown[];
  let end = text.length;
  for (const each of stops) {
    if (typeof each !== "string") throw refuse("stop", "expected a text or a list of texts");
    const at = each === "" ? -1 : text.indexOf(each);
    if (at >= 0) end = Math.min(end, at);
  }
  return text.slice(0, end);
}

/** Its one sentence, or what a tool answered. */
function say(messages: readonly JsonRecord[]): string {
  const last = messages.at(-1);
  if (last?.["role"] === "tool") return `The tool answered: ${textOf(last)}`;
  const seen = attachmentsOf(questionIn(messages));
  const received =
    seen.length === 0 ? "" : ` You sent ${seen.join(" and ")}, which it received but cannot see.`;
  const said = questionOf(messages);
  return `This is the demo model of UAS Gateway, not an AI.${received} You said: ${said}`;
}

function questionIn(messages: readonly JsonRecord[]): JsonRecord | undefined {
  return messages.findLast(({ role }) => role === "user");
}

/** What the user said last. */
function questionOf(messages: readonly JsonRecord[]): string {
  const question = questionIn(messages);
  return question === undefined ? "nothing" : textOf(question) || "nothing";
}

function textOf(message: JsonRecord): string {
  const { content } = message;
  if (typeof content === "string") return content;
  return recordsAt(message, "content")
    .map((part) => textAt(part, "text"))
    .join("");
}

/** The images and files of a message, in words. */
function attachmentsOf(message: JsonRecord | undefined): string[] {
  return recordsAt(message ?? {}, "content").flatMap((part) => {
    const { image_url: image, type } = part;
    if (type === "input_audio") return ["a recording"];
    if (type === "file") return ["a file"];
    if (type !== "image_url") return [];
    const url = isRecord(image) ? textAt(image, "url") : "";
    const [, media, base64] = /^data:([\w/+.-]+);base64,(.*)$/s.exec(url) ?? [];
    if (media === undefined || base64 === undefined) return ["an image"];
    return [`an image (${media}, ${Buffer.from(base64, "base64").length} bytes)`];
  });
}

/** The longest name of a function: as long as at any vendor. */
const nameCharsMax = 128;

/** The functions of a request. The gateway passes tools on unread: what is wrong with them is for the vendor to say. */
function readTools(body: JsonRecord): readonly JsonRecord[] {
  const tools = body["tools"] ?? [];
  const isRight = (tool: unknown): boolean => {
    if (!isRecord(tool) || typeof tool["type"] !== "string") return false;
    const { function: described } = tool;
    if (described === undefined) return true;
    if (!isRecord(described)) return false;
    const { name, parameters } = described;
    if (typeof name !== "string" || name.length > nameCharsMax) return false;
    return (
      parameters == null || (isRecord(parameters) && Array.isArray(parameters["required"] ?? []))
    );
  };
  if (!Array.isArray(tools) || !tools.every(isRight)) {
    const rule = `expected a list of functions with a name of at most ${nameCharsMax} characters and parameters`;
    throw refuse("tools", rule);
  }
  return (tools as readonly JsonRecord[]).flatMap(({ function: described }) =>
    isRecord(described) ? [described] : [],
  );
}

/**
 * Calls the named function, or the one whose name and description share most words with the question, then talks about
 * its answer.
 */
function toolCall({ body, messages, tools }: Asked): ToolCall | undefined {
  const { tool_choice: choice } = body;
  const named =
    isRecord(choice) && isRecord(choice["function"]) ? choice["function"]["name"] : undefined;
  const isRequired = choice === "required" || named !== undefined;
  if (isRequired && !tools.some(({ name }) => named === undefined || name === named)) {
    throw refuse("tool_choice", "names a function that is not among the tools");
  }
  const isAnswered = messages.at(-1)?.["role"] === "tool";
  if (choice === "none" || (isAnswered && !isRequired)) return undefined;
  const text = questionOf(messages);
  const words = new Set(wordsOf(text));
  const fit = ({ name, description }: JsonRecord): number =>
    wordsOf(`${String(name)} ${typeof description === "string" ? description : ""}`).filter(
      (word) => words.has(word),
    ).length;
  const tool =
    tools.find(({ name }) => name === named) ?? tools.toSorted((a, b) => fit(b) - fit(a))[0];
  if (tool === undefined) return undefined;
  const { name, parameters } = tool;
  const schema = { type: "object", ...(isRecord(parameters) && parameters) };
  const value = valueOf(schema, { text, param: "tools" });
  return {
    id: `call_demo_${randomUUID().replaceAll("-", "").slice(0, 20)}`,
    name: String(name),
    arguments: JSON.stringify(isRecord(value) ? value : {}),
  };
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [];
}

/** Tokens of an image. */
const imageTokens = 85;

/** A token is four bytes of what it reads and a word of what it says. */
function usageOf(messages: readonly JsonRecord[], choices: readonly DemoChoice[]): JsonRecord {
  let prompt = 3 * messages.length;
  let bytes = 0;
  for (const message of messages) {
    bytes += Buffer.byteLength(textOf(message));
    prompt += imageTokens * attachmentsOf(message).length;
  }
  prompt += Math.ceil(bytes / 4);
  const made = choices.reduce((sum, { words }) => sum + words.length, 0);
  return { prompt_tokens: prompt, completion_tokens: made, total_tokens: prompt + made };
}

// Only demo: it writes chat completions itself. Replies as one object, and as the chunks of a stream.

/** One of the replies that a request asks for. */
interface DemoChoice {
  /** Its tokens: words with the space behind them. Where a tool is called, those of the arguments. */
  readonly words: readonly string[];
  readonly call: Pick<ToolCall, "id" | "name"> | undefined;
  readonly finish: "stop" | "length" | "tool_calls";
}

/** A call of a function. */
interface ToolCall {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

/** Everything of a reply. */
interface ChatParts {
  readonly head: { readonly id: string; readonly created: number; readonly model: string };
  readonly choices: readonly DemoChoice[];
  readonly usage: JsonRecord;
  /** How many likely tokens to name for each; `undefined`: no log probabilities are wanted. */
  readonly topLogprobs: number | undefined;
  readonly wantsUsage: boolean;
}

/** A reply as one object. */
function wholeOf({ head, choices, usage, topLogprobs }: ChatParts): JsonRecord {
  return {
    ...head,
    object: "chat.completion",
    choices: choices.map((choice, index) => ({
      index,
      message: messageOf(choice),
      logprobs: logprobsOf(choice.call ? [] : choice.words, topLogprobs),
      finish_reason: choice.finish,
    })),
    usage,
  };
}

function messageOf({ words, call }: DemoChoice): JsonRecord {
  const tools = call && [
    { id: call.id, type: "function", function: { name: call.name, arguments: words.join("") } },
  ];
  return {
    role: "assistant",
    content: call ? null : words.join(""),
    refusal: null,
    ...(tools && { tool_calls: tools }),
  };
}

/** A reply as chunks: of several choices one after another. */
function* chunksOf(parts: ChatParts): Iterable<JsonRecord> {
  const { head, choices, usage, topLogprobs, wantsUsage } = parts;
  const object = "chat.completion.chunk";
  const chunk = (made: readonly JsonRecord[], counted: JsonRecord | null = null): JsonRecord => ({
    ...head,
    object,
    choices: made,
    ...(wantsUsage && { usage: counted }),
  });
  for (const [index, choice] of choices.entries()) {
    for (const { delta, word, finish = null } of deltasOf(choice)) {
      const logprobs = word === undefined ? null : logprobsOf([word], topLogprobs);
      yield chunk([{ index, delta, logprobs, finish_reason: finish }]);
    }
  }
  if (wantsUsage) yield chunk([], usage);
}

interface Delta {
  readonly delta: JsonRecord;
  /** The token that it brings. */
  readonly word?: string;
  readonly finish?: string;
}

function* deltasOf({ words, call, finish }: DemoChoice): Iterable<Delta> {
  yield { delta: { role: "assistant", content: call ? null : "", refusal: null } };
  if (call === undefined) {
    for (const word of words) yield { delta: { content: word }, word };
  } else {
    const { id, name } = call;
    const begin = { index: 0, id, type: "function", function: { name, arguments: "" } };
    yield { delta: { tool_calls: [begin] } };
    const rest = { index: 0, function: { arguments: words.join("") } };
    yield { delta: { tool_calls: [rest] } };
  }
  yield { delta: {}, finish };
}

/** The log probabilities of tokens: certain, with less likely ones behind. `null`: none are wanted. */
function logprobsOf(words: readonly string[], top: number | undefined): JsonRecord | null {
  if (top === undefined) return null;
  const content = words.map((token) => {
    const others = Array.from({ length: top }, (_none, at) =>
      at === 0 ? entryOf(token, 0) : entryOf(`other ${at}`, -10 - at),
    );
    return { ...entryOf(token, 0), top_logprobs: others };
  });
  return { content, refusal: null };
}

function entryOf(token: string, logprob: number): JsonRecord {
  return { token, logprob, bytes: [...Buffer.from(token)] };
}
