/** The official OpenAI library on chat completions: `create`, `stream()` and `runTools`. */
import OpenAI, { APIError } from "openai";
import OpenAIv6, { APIError as APIErrorV6 } from "openai-v6";
import type { ChatCompletion, ChatCompletionMessageParam } from "openai/resources";
import type { Answer, Ask, Client, Failure, Target } from "./client.ts";
import { localTools, placeSchema, runTool } from "./tools.ts";

/** Version 7. */
export function openaiChat(target: Target): Client {
  return wrap(new OpenAI(optionsOf(target)), target.model);
}

/** Version 6: other types, the same calls. */
export function openaiV6Chat(target: Target): Client {
  return wrap(new OpenAIv6(optionsOf(target)) as unknown as OpenAI, target.model);
}

/** Options of both versions and both styles. */
export function optionsOf({ origin, key }: Target): {
  apiKey: string;
  baseURL: string;
  maxRetries: number;
} {
  return { apiKey: key, baseURL: `${origin}/v1`, maxRetries: 0 };
}

/** Reads an error of either version. */
export function failureOf(error: unknown): Failure {
  if (error instanceof APIError || error instanceof APIErrorV6) {
    return { status: error.status as number | undefined, code: error.code ?? undefined };
  }
  return { status: undefined, code: undefined };
}

function wrap(openai: OpenAI, model: string): Client {
  const complete = async (messages: ChatCompletionMessageParam[], ask: Ask) => {
    const body = { model, messages, ...settingsOf(ask) };
    if (!ask.stream) return await openai.chat.completions.create(body);
    const stream = openai.chat.completions.stream({
      ...body,
      stream_options: { include_usage: true },
    });
    // The helper keeps only the last piece of members that it does not know.
    let reasoning = "";
    stream.on("chunk", ({ choices: [choice] }) => {
      reasoning += reasoningIn(choice?.delta ?? {});
    });
    const reply = await stream.finalChatCompletion();
    const message = reply.choices[0]?.message;
    if (message && reasoning !== "") Object.assign(message, { reasoning_content: reasoning });
    return reply;
  };
  return {
    failureOf,
    ask: async (ask) =>
      isBroken(ask)
        ? await iterate(openai, { model, messages: messagesOf(ask) })
        : answerOf(await complete(messagesOf(ask), ask)),
    loop: (ask) => runTools(openai, model, ask),
    async converse(asks) {
      const messages: ChatCompletionMessageParam[] = [];
      let answer: Answer = { text: "" };
      for (const ask of asks) {
        messages.push(...messagesOf(ask));
        const reply = await complete(messages, ask);
        const [choice] = reply.choices;
        if (choice) messages.push(choice.message);
        answer = answerOf(reply);
      }
      return answer;
    },
  };
}

/** A stream that is expected to break is read without the helper, which would notice by itself. */
export function isBroken(ask: Ask): boolean {
  return ask.stream === true && /\bcut\b|\berror midstream\b/.test(ask.text);
}

async function iterate(
  openai: OpenAI,
  body: { model: string; messages: ChatCompletionMessageParam[] },
): Promise<Answer> {
  let text = "";
  for await (const chunk of await openai.chat.completions.create({ ...body, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? "";
  }
  return { text };
}

function messagesOf({ system, text, image }: Ask): ChatCompletionMessageParam[] {
  const url = `data:image/png;base64,${image?.toString("base64")}`;
  return [
    ...(system === undefined ? [] : [{ role: "system" as const, content: system }]),
    {
      role: "user",
      content: image
        ? [
            { type: "text", text },
            { type: "image_url", image_url: { url } },
          ]
        : text,
    },
  ];
}

function settingsOf({ schema, think, temperature }: Ask) {
  return {
    ...(schema && {
      response_format: {
        type: "json_schema" as const,
        json_schema: { name: "place", schema, strict: true },
      },
    }),
    ...(think && { reasoning_effort: "high" as const }),
    ...(temperature !== undefined && { temperature }),
  };
}

async function runTools(openai: OpenAI, model: string, ask: Ask): Promise<Answer> {
  const tools = localTools.map(({ name, description }) => ({
    type: "function" as const,
    function: {
      name,
      description,
      parameters: { ...placeSchema, required: ["city"] },
      parse: (text: string) => JSON.parse(text) as { city: string },
      function: (args: { city: string }) => runTool(name, args),
    },
  }));
  const body = { model, messages: messagesOf(ask), tools, ...settingsOf(ask) };
  const runner = ask.stream
    ? openai.chat.completions.runTools({ ...body, stream: true })
    : openai.chat.completions.runTools(body);
  return answerOf(await runner.finalChatCompletion());
}

function answerOf({ choices, usage }: ChatCompletion): Answer {
  const [choice] = choices;
  const message: Partial<ChatCompletion.Choice["message"]> = choice?.message ?? {};
  return {
    text: message.content ?? "",
    reasoning: reasoningIn(message),
    refusal: message.refusal ?? "",
    finish: choice?.finish_reason,
    usage: usage && { input: usage.prompt_tokens, output: usage.completion_tokens },
  };
}

/** The member that hosts of open models add to the style. */
function reasoningIn(message: object): string {
  return "reasoning_content" in message && typeof message.reasoning_content === "string"
    ? message.reasoning_content
    : "";
}
