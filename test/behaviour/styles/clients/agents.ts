/**
 * `@openai/agents`: agents that run their tools themselves, on responses or on chat completions.
 */
import {
  Agent,
  type AgentInputItem,
  OpenAIProvider,
  Runner,
  setTracingDisabled,
  tool,
  user,
} from "@openai/agents";
import type { Answer, Ask, Client, Target } from "./client.ts";
import { failureOf } from "./openai-chat.ts";
import { localTools, placeSchema, roundsMax } from "./tools.ts";
import OpenAI from "openai";

/** On responses, storing nothing. */
export function agentsResponses(target: Target): Client {
  return wrap(target, true);
}

/** On chat completions. */
export function agentsChat(target: Target): Client {
  return wrap(target, false);
}

function wrap({ origin, key, model }: Target, useResponses: boolean): Client {
  setTracingDisabled(true);
  const openAIClient = new OpenAI({ apiKey: key, baseURL: `${origin}/v1`, maxRetries: 0 });
  const runner = new Runner({
    modelProvider: new OpenAIProvider({ openAIClient, useResponses }),
    tracingDisabled: true,
  });
  const run = async (
    input: AgentInputItem[],
    ask: Ask,
    withTools: boolean,
  ): Promise<{ answer: Answer; history: AgentInputItem[] }> => {
    const agent = agentOf(model, ask, { withTools, useResponses });
    const options = { maxTurns: roundsMax };
    const result = ask.stream
      ? await runner.run(agent, input, { ...options, stream: true })
      : await runner.run(agent, input, options);
    if ("completed" in result) await result.completed;
    const { finalOutput: output } = result;
    const { usage } = result.runContext;
    return {
      answer: {
        text: typeof output === "string" ? output : JSON.stringify(output),
        usage: { input: usage.inputTokens, output: usage.outputTokens },
      },
      history: result.history,
    };
  };
  return {
    failureOf,
    ask: async (ask) => (await run([turnOf(ask)], ask, false)).answer,
    loop: async (ask) => (await run([turnOf(ask)], ask, true)).answer,
    async converse(asks) {
      let history: AgentInputItem[] = [];
      let answer: Answer = { text: "" };
      for (const ask of asks) {
        const ran = await run([...history, turnOf(ask)], ask, false);
        history = ran.history;
        answer = ran.answer;
      }
      return answer;
    },
  };
}

function turnOf({ text, image }: Ask): AgentInputItem {
  if (image === undefined) return user(text);
  const url = `data:image/png;base64,${image.toString("base64")}`;
  return user([
    { type: "input_text", text },
    { type: "input_image", image: url },
  ]);
}

function agentOf(
  model: string,
  ask: Ask,
  { withTools, useResponses }: { withTools: boolean; useResponses: boolean },
) {
  return new Agent({
    name: "tester",
    model,
    ...(ask.system !== undefined && { instructions: ask.system }),
    ...(withTools && { tools: toolsOf() }),
    ...(ask.schema && {
      outputType: {
        type: "json_schema",
        name: "place",
        strict: true,
        schema: ask.schema,
      } as unknown as "text",
    }),
    modelSettings: {
      store: false,
      ...(ask.think && { reasoning: { effort: "high", summary: "auto" } }),
      ...(ask.think &&
        useResponses && { providerData: { include: ["reasoning.encrypted_content"] } }),
      ...(ask.temperature !== undefined && { temperature: ask.temperature }),
    },
  });
}

function toolsOf() {
  return localTools.map(({ name, description, run }) =>
    tool({
      name,
      description,
      parameters: { ...placeSchema, required: ["city"] },
      strict: true,
      execute: (input) => run(input as { city: string }),
    }),
  );
}
