/**
 * The AI SDK with each of its providers: `generateText` and `streamText`, with its own loops and
 * objects.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  generateText,
  isStepCount,
  jsonSchema,
  type LanguageModel,
  type ModelMessage,
  Output,
  RetryError,
  streamText,
  tool,
  type ToolSet,
} from "ai";
import type { Answer, Ask, Client, Failure, Target } from "./client.ts";
import { localTools, placeSchema, roundsMax } from "./tools.ts";

type Options = NonNullable<Parameters<typeof generateText>[0]["providerOptions"]>;

/** A provider's options for thinking, and its required options. */
interface Provider {
  readonly model: LanguageModel;
  readonly options: Options;
  readonly thinking: Options;
}

/** `@ai-sdk/openai` on responses; nothing is stored, so reasoning travels sealed. */
export function aiResponses({ origin, key, model }: Target): Client {
  const include = ["reasoning.encrypted_content" as const];
  return wrap({
    model: createOpenAI({ apiKey: key, baseURL: `${origin}/v1` }).responses(model),
    options: { openai: { store: false } },
    thinking: {
      openai: { store: false, forceReasoning: true, reasoningSummary: "auto", include },
    },
  });
}

/**
 * The same as it is by default: what it has said before goes back as references to stored items.
 */
export function aiStored({ origin, key, model }: Target): Client {
  return wrap({
    model: createOpenAI({ apiKey: key, baseURL: `${origin}/v1` }).responses(model),
    options: {},
    thinking: { openai: { forceReasoning: true, reasoningSummary: "auto" } },
  });
}

/** `@ai-sdk/openai` on chat completions. */
export function aiChat({ origin, key, model }: Target): Client {
  return wrap({
    model: createOpenAI({ apiKey: key, baseURL: `${origin}/v1` }).chat(model),
    options: {},
    thinking: { openai: { reasoningEffort: "high" } },
  });
}

/** `@ai-sdk/openai-compatible`: chat completions that may carry `reasoning_content`. */
export function aiCompatible({ origin, key, model }: Target): Client {
  const provider = createOpenAICompatible({
    name: "compatible",
    apiKey: key,
    baseURL: `${origin}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  return wrap({
    model: provider(model),
    options: {},
    thinking: { compatible: { reasoningEffort: "high" } },
  });
}

/** `@ai-sdk/anthropic` on messages. */
export function aiMessages({ origin, key, model }: Target): Client {
  return wrap({
    model: createAnthropic({ apiKey: key, baseURL: `${origin}/v1` })(model),
    options: { anthropic: { structuredOutputMode: "outputFormat" } },
    thinking: { anthropic: { thinking: { type: "enabled", budgetTokens: 1_024 } } },
  });
}

function wrap(provider: Provider): Client {
  return {
    failureOf,
    ask: async (ask) => (await run(provider, [turnOf(ask)], { ask })).answer,
    loop: async (ask) => (await run(provider, [turnOf(ask)], { ask, tools: toolsOf() })).answer,
    async converse(asks) {
      const messages: ModelMessage[] = [];
      let answer: Answer = { text: "" };
      for (const ask of asks) {
        messages.push(turnOf(ask));
        const ran = await run(provider, messages, { ask });
        messages.push(...ran.messages);
        answer = ran.answer;
      }
      return answer;
    },
  };
}

async function run(
  provider: Provider,
  messages: ModelMessage[],
  { ask, tools }: { ask: Ask; tools?: ToolSet },
): Promise<{ answer: Answer; messages: ModelMessage[] }> {
  const { system, schema, think, temperature } = ask;
  const options = {
    model: provider.model,
    messages,
    maxRetries: 0,
    providerOptions: think ? provider.thinking : provider.options,
    stopWhen: isStepCount(roundsMax),
    ...(tools && { tools }),
    ...(system !== undefined && { instructions: system }),
    ...(schema && { output: Output.object({ schema: jsonSchema(schema) }) }),
    ...(temperature !== undefined && { temperature }),
  };
  const result = ask.stream ? await streamed(options) : await generateText(options);
  const usage = await result.usage;
  return {
    answer: {
      text: await result.text,
      reasoning: (await result.reasoningText) ?? "",
      finish: await result.finishReason,
      usage: { input: usage.inputTokens ?? 0, output: usage.outputTokens ?? 0 },
    },
    messages: (await result.response).messages,
  };
}

/** Errors of a stream are parts of it. */
async function streamed(options: Parameters<typeof streamText>[0]) {
  let failure: unknown;
  const result = streamText({
    ...options,
    onError: ({ error }) => {
      failure = error;
    },
  });
  await result.consumeStream();
  if (failure !== undefined) throw failure;
  return result;
}

function turnOf({ text, image }: Ask): ModelMessage {
  return {
    role: "user",
    content: [
      { type: "text", text },
      ...(image ? [{ type: "file" as const, mediaType: "image/png", data: image }] : []),
    ],
  };
}

function toolsOf(): ToolSet {
  return Object.fromEntries(
    localTools.map(({ name, description, run: runLocal }) => [
      name,
      tool({
        description,
        inputSchema: jsonSchema<{ city: string }>({ ...placeSchema, required: ["city"] }),
        execute: (input) => runLocal(input),
      }),
    ]),
  );
}

function failureOf(error: unknown): Failure {
  const last = RetryError.isInstance(error) ? error.lastError : error;
  if (!APICallError.isInstance(last)) return { status: undefined, code: undefined };
  const body = JSON.parse(last.responseBody ?? "{}") as {
    error?: { code?: string | null; details?: { error_code?: string } };
  };
  return {
    status: last.statusCode,
    code: body.error?.details?.error_code ?? body.error?.code ?? undefined,
  };
}
