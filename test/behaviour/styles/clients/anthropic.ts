/** The official Anthropic library: `create`, `stream()`, and `beta.messages.toolRunner`. */
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import { betaTool } from "@anthropic-ai/sdk/helpers/beta/json-schema";
import type { Message, MessageParam } from "@anthropic-ai/sdk/resources";
import AnthropicV0, { APIError as APIErrorV0 } from "anthropic-sdk-v0";
import type { Answer, Ask, Client, Failure, Target } from "./client.ts";
import { isBroken } from "./openai-chat.ts";
import { localTools, placeSchema, roundsMax, runTool } from "./tools.ts";

/**
 * Version 1: a bearer, 2026-10-21; tools by the runner, which keeps the conversation in a thread.
 */
export function anthropic(target: Target): Client {
  const client = new Anthropic(optionsOf(target));
  return { ...wrap(client, target.model), loop: (ask) => runner(client, target.model, ask) };
}

/** Version 1 with its loop written by hand, and the address given with `/v1`. */
export function anthropicByHand(target: Target): Client {
  return wrap(new Anthropic(optionsOf(target)), target.model);
}

/** Version 0: `x-api-key`, 2023-06-01. */
export function anthropicV0(target: Target): Client {
  return wrap(new AnthropicV0(optionsOf(target)) as unknown as Anthropic, target.model, true);
}

function optionsOf({ origin, key }: Target) {
  return { apiKey: key, baseURL: origin, maxRetries: 0 };
}

function failureOf(error: unknown): Failure {
  if (error instanceof APIError) {
    return { status: error.status as number | undefined, code: error.errorCode ?? undefined };
  }
  if (error instanceof APIErrorV0) {
    const body = error.error as { error?: { details?: { error_code?: string } } } | undefined;
    return { status: error.status as number | undefined, code: body?.error?.details?.error_code };
  }
  return { status: undefined, code: undefined };
}

function wrap(client: Anthropic, model: string, hasSampling = false): Client {
  const send = async (messages: MessageParam[], ask: Ask, withTools = false): Promise<Message> => {
    const body = {
      model,
      messages,
      ...settingsOf(ask, hasSampling),
      ...(withTools && { tools: toolsOf() }),
    };
    if (!ask.stream) return await client.messages.create(body);
    if (!isBroken(ask)) return await client.messages.stream(body).finalMessage();
    for await (const _event of await client.messages.create({ ...body, stream: true })) continue;
    return {} as Message;
  };
  return {
    failureOf,
    ask: async (ask) => answerOf(await send([turnOf(ask)], ask)),
    async loop(ask) {
      const messages = [turnOf(ask)];
      for (let round = 0; round < roundsMax; round++) {
        const reply = await send(messages, ask, true);
        const content = reply.content.flatMap((block) =>
          block.type === "tool_use"
            ? [
                {
                  type: "tool_result" as const,
                  tool_use_id: block.id,
                  content: runTool(block.name, block.input as { city: string }),
                },
              ]
            : [],
        );
        if (content.length === 0) return answerOf(reply);
        messages.push({ role: "assistant", content: reply.content }, { role: "user", content });
      }
      throw new Error("the loop has no end");
    },
    async converse(asks) {
      const messages: MessageParam[] = [];
      let answer: Answer = { text: "" };
      for (const ask of asks) {
        messages.push(turnOf(ask));
        const reply = await send(messages, ask);
        messages.push({ role: "assistant", content: reply.content });
        answer = answerOf(reply);
      }
      return answer;
    },
  };
}

async function runner(client: Anthropic, model: string, ask: Ask): Promise<Answer> {
  const tools = localTools.map(({ name, description, run }) =>
    betaTool({ name, description, inputSchema: placeSchema, run: (input) => run(input) }),
  );
  const body = {
    model,
    messages: [{ role: "user" as const, content: ask.text }],
    tools,
    max_iterations: roundsMax,
    ...settingsOf(ask, false),
  };
  const last = ask.stream
    ? await client.beta.messages.toolRunner({ ...body, stream: true }).runUntilDone()
    : await client.beta.messages.toolRunner(body).runUntilDone();
  return answerOf(last as unknown as Message);
}

function turnOf({ text, image }: Ask): MessageParam {
  if (image === undefined) return { role: "user", content: text };
  const data = image.toString("base64");
  return {
    role: "user",
    content: [
      { type: "image", source: { type: "base64", media_type: "image/png", data } },
      { type: "text", text },
    ],
  };
}

function settingsOf({ schema, think, temperature, system }: Ask, hasSampling: boolean) {
  return {
    max_tokens: 2_000,
    ...(schema && { output_config: { format: { type: "json_schema" as const, schema } } }),
    ...(think && { thinking: { type: "enabled" as const, budget_tokens: 1_024 } }),
    ...(hasSampling && temperature !== undefined && { temperature }),
    ...(system !== undefined && { system }),
  };
}

function toolsOf() {
  return localTools.map(({ name, description }) => ({
    name,
    description,
    input_schema: placeSchema as unknown as { type: "object" },
  }));
}

function answerOf({ content, stop_reason, usage }: Message): Answer {
  return {
    text: content.map((block) => (block.type === "text" ? block.text : "")).join(""),
    reasoning: content.map((block) => (block.type === "thinking" ? block.thinking : "")).join(""),
    finish: stop_reason,
    usage: {
      input:
        usage.input_tokens +
        (usage.cache_read_input_tokens ?? 0) +
        (usage.cache_creation_input_tokens ?? 0),
      output: usage.output_tokens,
    },
  };
}
