/**
 * Only demo: it writes text itself. Chat completions, tool calls and legacy completions, whole and
 * as chunks.
 */
import { randomUUID } from "node:crypto";
import { isRecord, type JsonRecord, recordAt, recordsAt, textAt } from "../../wire/json/value.ts";
import { DemoRequestError, integerMember, textsIn, tokensOf } from "./request.ts";

/** A reply, computed from the request alone. */
export interface DemoReply {
  /** The reply as one object. */
  readonly whole: () => JsonRecord;
  /** The reply as stream chunks; the usage chunk comes last if the request asks for it. */
  readonly chunks: () => Iterable<JsonRecord>;
}

const tokensMax = 2 ** 31 - 1;

/**
 * Answers a chat: repeats the prompt, calls a tool, or talks about a tool's answer. @throws
 * DemoRequestError
 */
export function chat(body: JsonRecord): DemoReply {
  const messages = recordsAt(body, "messages");
  if (messages.length === 0) throw new DemoRequestError("messages", "expected messages");
  const limit = { most: tokensMax, otherwise: tokensMax };
  const maxTokens = Math.min(
    integerMember(body, "max_tokens", limit),
    integerMember(body, "max_completion_tokens", limit),
  );
  const tool = toolToCall(body, messages);
  const text = tool === undefined ? answerOf(body, messages) : argumentsOf(tool, messages);
  const all = wordsOf(text);
  const words = all.slice(0, maxTokens);
  const whole = tool === undefined ? "stop" : "tool_calls";
  const finish = words.length < all.length ? "length" : whole;
  const call = tool && { id: `call_demo_${randomUUID()}`, name: textAt(tool, "name") };
  const indexes = [...Array(integerMember(body, "n", { most: 128, otherwise: 1 })).keys()];
  const head = headOf("chatcmpl-demo", body);
  const prompt = tokensOf(messages.flatMap(({ content }) => textsIn(content)));
  const usage = usageOf(prompt, words.length * indexes.length);
  return {
    whole: () => {
      const message = {
        role: "assistant",
        content: call ? null : words.join(""),
        refusal: null,
        ...(call && { tool_calls: [functionCall(call, words)] }),
      };
      const choices = indexes.map((index) => ({
        index,
        message,
        logprobs: null,
        finish_reason: finish,
      }));
      return { ...head, object: "chat.completion", choices, usage };
    },
    *chunks() {
      const object = "chat.completion.chunk";
      for (const index of indexes) {
        const chunk = (delta: JsonRecord, finish_reason: string | null = null): JsonRecord => ({
          ...head,
          object,
          choices: [{ index, delta, logprobs: null, finish_reason }],
        });
        yield chunk({ role: "assistant", content: call ? null : "" });
        if (call) yield chunk({ tool_calls: [{ index: 0, ...functionCall(call, []) }] });
        for (const word of words) {
          const part = [{ index: 0, function: { arguments: word } }];
          yield chunk(call ? { tool_calls: part } : { content: word });
        }
        yield chunk({}, finish);
      }
      if (wantsUsage(body)) yield { ...head, object, choices: [], usage };
    },
  };
}

/** Continues each prompt with the same sentence. @throws DemoRequestError */
export function complete(body: JsonRecord): DemoReply {
  const all = wordsOf(" … says the demo model of UAS Gateway, which is not an AI.");
  const words = all.slice(0, integerMember(body, "max_tokens", { most: tokensMax, otherwise: 16 }));
  const prompts = promptsIn(body["prompt"]);
  const count = integerMember(body, "n", { most: 128, otherwise: 1 });
  const finish = words.length < all.length ? "length" : "stop";
  const choices = prompts
    .flatMap((prompt) => Array<string>(count).fill(prompt))
    .map((prompt, index) => ({ index, words: body["echo"] === true ? [prompt, ...words] : words }));
  const usage = usageOf(tokensOf(prompts), choices.length * words.length);
  const head = { ...headOf("cmpl-demo", body), object: "text_completion" };
  const choiceOf = (index: number, text: string, finish_reason: string | null) => ({
    text,
    index,
    logprobs: null,
    finish_reason,
  });
  return {
    whole: () => ({
      ...head,
      choices: choices.map(({ index, words: own }) => choiceOf(index, own.join(""), finish)),
      usage,
    }),
    *chunks() {
      for (const { index, words: own } of choices) {
        for (const word of own) yield { ...head, choices: [choiceOf(index, word, null)] };
        yield { ...head, choices: [choiceOf(index, "", finish)] };
      }
      if (wantsUsage(body)) yield { ...head, choices: [], usage };
    },
  };
}

function headOf(prefix: string, { model }: JsonRecord): JsonRecord {
  const created = Math.floor(Date.now() / 1_000);
  return { id: `${prefix}-${randomUUID()}`, created, model };
}

function usageOf(prompt: number, completion: number): JsonRecord {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}

function wantsUsage(body: JsonRecord): boolean {
  return recordAt(body, "stream_options")?.["include_usage"] === true;
}

function functionCall(
  { id, name }: { readonly id: string; readonly name: string },
  words: readonly string[],
): JsonRecord {
  return { id, type: "function", function: { name, arguments: words.join("") } };
}

/**
 * The tokens of a text: words with the space behind them, cut every 31 characters, as no tokenizer
 * has longer tokens.
 */
function wordsOf(text: string): readonly string[] {
  return text.match(/\S{1,31}\s?|\s/gu) ?? [];
}

/** The named or first function, unless the last message is a tool's answer. */
function toolToCall(
  { tools, tool_choice: choice }: JsonRecord,
  messages: readonly JsonRecord[],
): JsonRecord | undefined {
  const named = isRecord(choice) ? recordAt(choice, "function")?.["name"] : undefined;
  const isRequired = choice === "required" || named !== undefined;
  const isAnswered = messages.at(-1)?.["role"] === "tool";
  if (choice === "none" || (isAnswered && !isRequired)) return undefined;
  return recordsAt({ tools }, "tools")
    .map((tool) => recordAt(tool, "function") ?? {})
    .find((tool) => textAt(tool, "name") !== "" && (named === undefined || tool["name"] === named));
}

function argumentsOf(tool: JsonRecord, messages: readonly JsonRecord[]): string {
  const value = valueOf({ ...recordAt(tool, "parameters"), type: "object" }, questionOf(messages));
  return JSON.stringify(value);
}

/** Returns the text of a reply in the requested form. */
function answerOf(body: JsonRecord, messages: readonly JsonRecord[]): string {
  const question = questionOf(messages);
  const format = recordAt(body, "response_format") ?? {};
  if (format["type"] === "json_schema") {
    const schema = recordAt(recordAt(format, "json_schema") ?? {}, "schema") ?? {};
    return JSON.stringify(valueOf(schema, question));
  }
  if (format["type"] === "json_object") return JSON.stringify({ answer: question });
  const last = messages.at(-1);
  if (last?.["role"] === "tool") return `The tool answered: ${textsIn(last["content"]).join("")}`;
  const asked = messages.findLast(({ role }) => role === "user") ?? {};
  const files = recordsAt(asked, "content").filter(({ type }) => type !== "text").length;
  const counted = files === 1 ? "a file" : `${files} files`;
  const received = files === 0 ? "" : ` You sent ${counted}, which it received but cannot see.`;
  return `This is the demo model of UAS Gateway, not an AI.${received} You said: ${question}`;
}

/** The last text of the user. */
function questionOf(messages: readonly JsonRecord[]): string {
  const question = messages.findLast(({ role }) => role === "user");
  return textsIn(question?.["content"]).join("") || "nothing";
}

/**
 * A value of a plain JSON Schema: constants, enums and types. Other keywords, such as patterns and
 * references, are ignored.
 */
function valueOf(schema: JsonRecord, text: string): unknown {
  if ("const" in schema) return schema["const"];
  if (Array.isArray(schema["enum"])) return (schema["enum"] as unknown[])[0];
  const minimum = typeof schema["minimum"] === "number" ? schema["minimum"] : 1;
  switch ([schema["type"]].flat()[0]) {
    case "object": {
      const properties = Object.entries(recordAt(schema, "properties") ?? {});
      const required = textsIn(schema["required"]);
      const wanted = properties.filter(([name]) => required.includes(name));
      return Object.fromEntries(
        wanted.map(([name, each]) => [name, valueOf(isRecord(each) ? each : {}, text)]),
      );
    }
    case "array":
      return [valueOf(recordAt(schema, "items") ?? {}, text)];
    case "integer":
      return Math.ceil(minimum);
    case "number":
      return minimum;
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return text;
  }
}

/** The prompts of a legacy completion; token ids become words. */
function promptsIn(prompt: unknown): readonly string[] {
  const isTokens = Array.isArray(prompt) && typeof prompt[0] === "number";
  const all: readonly unknown[] = isTokens || !Array.isArray(prompt) ? [prompt] : prompt;
  return all.map((each) => (Array.isArray(each) ? decodeTokens(each as number[]) : String(each)));
}

/** Token ids as words, since the tables of real tokenizers are too large for a demo. */
export function decodeTokens(tokens: readonly number[]): string {
  return tokens.map((token) => `token${token}`).join(" ");
}
