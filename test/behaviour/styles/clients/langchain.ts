/** LangChain's chat models: `invoke` and `stream`, `bindTools`, `withStructuredOutput`. */
import { ChatAnthropic } from "@langchain/anthropic";
import {
  type AIMessage,
  type AIMessageChunk,
  type BaseMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { ChatOpenAI } from "@langchain/openai";
import type { Answer, Ask, Client, Failure, Target } from "./client.ts";
import { localTools, placeSchema, roundsMax, runTool } from "./tools.ts";

/** `ChatOpenAI` on chat completions. */
export function langchainChat(target: Target): Client {
  return wrap(({ temperature }) => chatOpenAI(target, temperature, false));
}

/** `ChatOpenAI` on responses; nothing is stored. */
export function langchainResponses(target: Target): Client {
  return wrap(({ temperature, think }) => chatOpenAI(target, temperature, true, think), {
    include: ["reasoning.encrypted_content"],
  });
}

function chatOpenAI(
  { origin, key, model }: Target,
  temperature: number | undefined,
  useResponsesApi: boolean,
  think = false,
): ChatOpenAI {
  return new ChatOpenAI({
    model,
    apiKey: key,
    useResponsesApi,
    ...(useResponsesApi && { zdrEnabled: true }),
    // Under any other name than OpenAI's own models it leaves `reasoning` out.
    ...(think && { modelKwargs: { reasoning: { effort: "high", summary: "auto" } } }),
    ...(temperature !== undefined && { temperature }),
    configuration: { baseURL: `${origin}/v1` },
    maxRetries: 0,
  });
}

/** `ChatAnthropic`. */
export function langchainMessages({ origin, key, model }: Target): Client {
  return wrap(
    ({ temperature, think }) =>
      new ChatAnthropic({
        model,
        apiKey: key,
        anthropicApiUrl: origin,
        maxTokens: 2_000,
        maxRetries: 0,
        ...(think && { thinking: { type: "enabled", budget_tokens: 1_024 } }),
        ...(temperature !== undefined && { temperature }),
      }),
  );
}

type Model = BaseChatModel & Required<Pick<BaseChatModel, "bindTools">>;

/** @param options sent with each call that thinks */
function wrap(modelOf: (ask: Ask) => ChatOpenAI | ChatAnthropic, options: object = {}): Client {
  const send = (model: Runnable, messages: BaseMessage[], ask: Ask): Promise<AIMessage> =>
    sendWith(model, messages, { ask, options: ask.think ? options : {} });
  return {
    failureOf,
    async ask(ask) {
      const model = modelOf(ask);
      if (ask.schema) {
        const structured = model.withStructuredOutput({ title: "place", ...ask.schema });
        return { text: JSON.stringify(await structured.invoke(messagesOf(ask))) };
      }
      return answerOf(await send(model, messagesOf(ask), ask));
    },
    async loop(ask) {
      const model = (modelOf(ask) as Model).bindTools(toolsOf());
      const messages = messagesOf(ask);
      for (let round = 0; round < roundsMax; round++) {
        const reply = await send(model, messages, ask);
        const calls = reply.tool_calls ?? [];
        if (calls.length === 0) return answerOf(reply);
        messages.push(reply, ...calls.map(resultOf));
      }
      throw new Error("the loop has no end");
    },
    async converse(asks) {
      const messages: BaseMessage[] = [];
      let answer: Answer = { text: "" };
      for (const ask of asks) {
        messages.push(...messagesOf(ask));
        const reply = await send(modelOf(ask), messages, ask);
        messages.push(reply);
        answer = answerOf(reply);
      }
      return answer;
    },
  };
}

interface Runnable {
  invoke(messages: BaseMessage[], options: object): Promise<unknown>;
  stream(messages: BaseMessage[], options: object): Promise<AsyncIterable<unknown>>;
}

async function sendWith(
  model: Runnable,
  messages: BaseMessage[],
  { ask, options }: { ask: Ask; options: object },
): Promise<AIMessage> {
  if (!ask.stream) return (await model.invoke(messages, options)) as AIMessage;
  let whole: AIMessageChunk | undefined;
  const stream = await model.stream(messages, options);
  for await (const chunk of stream as AsyncIterable<AIMessageChunk>) {
    whole = whole === undefined ? chunk : whole.concat(chunk);
  }
  if (whole === undefined) throw new Error("an empty stream");
  return whole;
}

function messagesOf({ system, text, image }: Ask): BaseMessage[] {
  const url = `data:image/png;base64,${image?.toString("base64")}`;
  return [
    ...(system === undefined ? [] : [new SystemMessage(system)]),
    new HumanMessage(
      image
        ? {
            content: [
              { type: "text", text },
              { type: "image_url", image_url: { url } },
            ],
          }
        : text,
    ),
  ];
}

function toolsOf() {
  return localTools.map(({ name, description }) => ({
    type: "function" as const,
    function: { name, description, parameters: placeSchema },
  }));
}

function resultOf({ id, name, args }: { id?: string; name: string; args: unknown }): ToolMessage {
  const content = runTool(name, args as { city: string });
  return new ToolMessage({ tool_call_id: id ?? "", name, content });
}

interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
}

function answerOf(message: AIMessage): Answer {
  const { content, response_metadata: metadata, additional_kwargs: more } = message;
  const usage = message.usage_metadata as Usage | undefined;
  const blocks = message.contentBlocks;
  const text =
    typeof content === "string"
      ? content
      : blocks.map((block) => (block.type === "text" ? block.text : "")).join("");
  const details = metadata["incomplete_details"] as { reason?: string } | null | undefined;
  const finish: unknown = [
    details?.reason,
    ...["finish_reason", "stop_reason", "status"].map((name) => metadata[name] ?? more[name]),
  ].find((value) => typeof value === "string");
  return {
    text,
    reasoning:
      blocks.map((block) => (block.type === "reasoning" ? block.reasoning : "")).join("") ||
      summaryOf(more["reasoning"]),
    refusal: typeof more["refusal"] === "string" ? more["refusal"] : "",
    finish: typeof finish === "string" ? finish : undefined,
    usage: usage && { input: usage.input_tokens, output: usage.output_tokens },
  };
}

/** Where the library puts what a responses vendor thinks. */
function summaryOf(reasoning: unknown): string {
  const { summary = [] } = (reasoning ?? {}) as { summary?: ReadonlyArray<{ text: string }> };
  return summary.map(({ text }) => text).join("");
}

function failureOf(error: unknown): Failure {
  const {
    status,
    code,
    error: body,
  } = error as {
    status?: number;
    code?: string;
    error?: { error?: { details?: { error_code?: string } } };
  };
  return { status, code: body?.error?.details?.error_code ?? code ?? undefined };
}
