/**
 * A vendor inside the gateway, so that the first call works before any other is configured. Honest and
 * deterministic: it says that it is no AI and repeats what it was told. Models: `chat` streams at a
 * human pace, `instant` as fast as it can; `image`, `audio` and `slow` run tasks; `embedding`, `rerank` and
 * `moderation` do what they are named after.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { VendorConfig } from "../../config/config.ts";
import { type CancelSignal, toAbortSignal } from "../../core/cancel-signal.ts";
import type { JsonRecord } from "../../wire/json/value.ts";
import { HttpFailure } from "../../http/failure.ts";
import { rerankDialects } from "../http-vendor.ts";
import { bodyText, jsonReply } from "../operation-form.ts";
import type { VendorBody, VendorReply } from "../reply.ts";
import type { Vendor, VendorCall, VendorKind, VendorOperation } from "../vendor.ts";
import {
  editImages,
  embed,
  moderate,
  rerank,
  speak,
  transcribe,
  translate,
  varyImages,
  decode,
  tokensOf,
} from "./operations.ts";
import {
  answered,
  readBody,
  flagMember,
  numberMember,
  recordMember,
  refuse,
  requireKnown,
  requireModel,
} from "./request.ts";
import { createDemoTasks } from "./tasks.ts";
import { replyTo, atStop } from "./text.ts";
import { randomUUID } from "node:crypto";

export const demo: VendorKind = {
  dialects: [Dialect.CHAT_COMPLETIONS],
  modelTypes: [
    ModelType.TEXT,
    ModelType.IMAGE,
    ModelType.AUDIO,
    ModelType.EMBEDDING,
    ModelType.RERANK,
    ModelType.MODERATION,
  ],
  needsBaseUrl: false,
  needsApiKey: false,
  create,
};

/** Between two words of the `chat` model, in milliseconds: about 25 words a second. */
const paceMs = 40;

function create(config: VendorConfig): Vendor {
  const tasks = createDemoTasks();
  return {
    name: config.name,
    dialects: new Set(demo.dialects),
    exchange: (call) => answer(call, () => generated(call)),
    embed: operation((call) => jsonReply(embed(readBody(bodyText(call))))),
    rerank: operation((call) => jsonReply(rerank(readBody(bodyText(call)))), rerankDialects),
    moderate: operation((call) => jsonReply(moderate(readBody(bodyText(call))))),
    complete: operation(completed),
    speak: operation(speak),
    transcribe: operation(transcribe),
    translate: operation(translate),
    editImages: operation(editImages),
    varyImages: operation(varyImages),
    tasks,
    close: () => tasks.close(),
  };
}

type Answer = (call: VendorCall) => VendorReply | Promise<VendorReply>;

function operation(send: Answer, dialects: readonly Dialect[] = demo.dialects): VendorOperation {
  return { dialects: new Set(dialects), send: (call) => answer(call, () => send(call)) };
}

async function answer(
  call: VendorCall,
  send: () => VendorReply | Promise<VendorReply>,
): Promise<VendorReply> {
  const reply = await answered(send);
  if (reply.status === 200) call.signal.onSent?.();
  return reply;
}

function generated(call: VendorCall): VendorReply {
  const reply = replyTo(bodyText(call));
  const delayMs = reply.model === "chat" ? paceMs : 0;
  return reply.stream
    ? streamed(events(reply.chunks(), delayMs, call.signal))
    : jsonReply(reply.whole());
}

function completed(call: VendorCall): VendorReply {
  const { stream, whole, chunks } = complete(bodyText(call));
  return stream ? streamed(events(chunks(), 0, call.signal)) : jsonReply(whole());
}

async function* events(
  chunks: Iterable<JsonRecord>,
  delayMs: number,
  signal: CancelSignal,
): AsyncGenerator<Buffer, undefined> {
  const abort = delayMs > 0 ? toAbortSignal(signal) : undefined;
  for (const chunk of chunks) {
    if (signal.aborted) throw new HttpFailure("aborted", "aborted");
    yield Buffer.from(`data: ${JSON.stringify(chunk)}\n\n`);
    if (abort !== undefined) {
      await sleep(delayMs, undefined, { signal: abort }).catch(() => {
        throw new HttpFailure("aborted", "aborted");
      });
    }
  }
  yield Buffer.from("data: [DONE]\n\n");
}

function streamed(pieces: AsyncGenerator<Buffer, undefined>): VendorReply {
  return { status: 200, headers: { "content-type": "text/event-stream" }, body: toBody(pieces) };
}

function toBody(pieces: AsyncGenerator<Buffer, undefined>): VendorBody {
  let piece: readonly Buffer[] = [];
  return {
    async ready() {
      const { done, value } = await pieces.next();
      if (!done) piece = [value];
      return !done;
    },
    take: () => piece,
    whole: async () => Buffer.concat(await Array.fromAsync(pieces)),
    cancel: () => void pieces.return(undefined),
  };
}

// Legacy completions, computed from the request alone.

/** A completion, whole and as chunks. */
interface DemoCompletion {
  readonly stream: boolean;
  readonly whole: () => JsonRecord;
  readonly chunks: () => Iterable<JsonRecord>;
}

const known = new Set(
  `model prompt max_tokens n best_of echo stream stream_options stop logprobs temperature top_p seed user
  presence_penalty frequency_penalty logit_bias`.split(/\s+/),
);

const sentence = " … says the demo model of UAS Gateway, which is not an AI.";

interface Choice {
  readonly index: number;
  /** Its tokens: the prompt where it is repeated, then words with the space before them. */
  readonly tokens: readonly string[];
  readonly finish: "length" | "stop";
}

/** Continues texts, each with the one sentence of the demo vendor. @throws DemoRequestError */
export function complete(json: string): DemoCompletion {
  const body = readBody(json);
  const model = requireModel(body, ["chat", "instant"]);
  requireKnown(body, known);
  const range = { least: 0, most: 2 ** 31 - 1, isWhole: true };
  const limit = numberMember(body, "max_tokens", range) ?? 16;
  const count = numberMember(body, "n", { least: 1, most: 128, isWhole: true }) ?? 1;
  const best = numberMember(body, "best_of", { least: 1, most: 128, isWhole: true }) ?? count;
  if (best < count) throw refuse("best_of", `expected at least "n", which is ${count}`);
  const top = numberMember(body, "logprobs", { least: 0, most: 5, isWhole: true });
  const isEcho = flagMember(body, "echo");
  const text = atStop(sentence, body["stop"]);
  const all = text === "" ? [] : text.split(/(?<=\S)(?=\s)/);
  const made = all.slice(0, limit);
  const prompts = promptsOf(body["prompt"]);
  const choices = prompts.flatMap((prompt, at) =>
    Array.from({ length: count }, (_none, each): Choice => {
      const finish = made.length < all.length ? "length" : "stop";
      return { index: at * count + each, tokens: isEcho ? [prompt, ...made] : made, finish };
    }),
  );
  const written = choices.length * made.length;
  const read = tokensOf(prompts);
  const usage = { prompt_tokens: read, completion_tokens: written, total_tokens: read + written };
  const head = {
    id: `cmpl-demo-${randomUUID()}`,
    object: "text_completion",
    created: Math.floor(Date.now() / 1_000),
    model,
  };
  const { include_usage: wantsUsage } = recordMember(body, "stream_options") ?? {};
  const choice = (
    { index, tokens }: Pick<Choice, "index" | "tokens">,
    finish: string | null,
    offset = 0,
  ) => ({
    text: tokens.join(""),
    index,
    logprobs: top === undefined ? null : logprobsOf(tokens, top, offset),
    finish_reason: finish,
  });
  return {
    stream: flagMember(body, "stream"),
    whole: () => ({ ...head, choices: choices.map((each) => choice(each, each.finish)), usage }),
    *chunks() {
      for (const { index, tokens, finish } of choices) {
        let offset = 0;
        for (const token of tokens) {
          yield { ...head, choices: [choice({ index, tokens: [token] }, null, offset)] };
          offset += token.length;
        }
        yield { ...head, choices: [choice({ index, tokens: [] }, finish, offset)] };
      }
      if (wantsUsage === true) yield { ...head, choices: [], usage };
    },
  };
}

/** The log probabilities of tokens: certain, with less likely ones behind. @param offset where the first one begins */
function logprobsOf(tokens: readonly string[], top: number, offset: number): JsonRecord {
  const others = Array.from({ length: Math.max(0, top - 1) }, (_none, at) => [
    `other ${at + 1}`,
    -11 - at,
  ]);
  const offsets = tokens.map((_token, at) => offset + tokens.slice(0, at).join("").length);
  return {
    tokens,
    token_logprobs: tokens.map(() => 0),
    top_logprobs: tokens.map((token) =>
      Object.fromEntries(top === 0 ? [] : [[token, 0], ...others]),
    ),
    text_offset: offsets,
  };
}

/** The prompts; tokens are decoded. */
function promptsOf(prompt: unknown): readonly string[] {
  const isTokens = Array.isArray(prompt) && typeof prompt[0] === "number";
  const all: readonly unknown[] = isTokens || !Array.isArray(prompt) ? [prompt] : prompt;
  return all.map((each) => (Array.isArray(each) ? decode(each as number[]) : String(each)));
}
