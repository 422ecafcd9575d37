/** The official OpenAI library on responses: `create` and the strict `stream()`. */
import OpenAI from "openai";
import OpenAIv6 from "openai-v6";
import type {
  Response,
  ResponseInputItem,
  ResponseOutputItem,
} from "openai/resources/responses/responses";
import type { Answer, Ask, Client, Target } from "./client.ts";
import { failureOf, isBroken, optionsOf } from "./openai-chat.ts";
import { localTools, placeSchema, roundsMax, runTool } from "./tools.ts";

/** Version 7. */
export function openaiResponses(target: Target): Client {
  return wrap(new OpenAI(optionsOf(target)), target.model);
}

/** Version 6: other types, the same calls. */
export function openaiV6Responses(target: Target): Client {
  return wrap(new OpenAIv6(optionsOf(target)) as unknown as OpenAI, target.model);
}

function wrap(openai: OpenAI, model: string): Client {
  const respond = async (
    input: ResponseInputItem[],
    ask: Ask,
    withTools = false,
  ): Promise<Response> => {
    const body = { model, input, store: false, ...settingsOf(ask), ...(withTools && toolsOf()) };
    if (!ask.stream) return await openai.responses.create(body);
    if (!isBroken(ask)) return await openai.responses.stream(body).finalResponse();
    let last: Response | undefined;
    for await (const event of await openai.responses.create({ ...body, stream: true })) {
      if ("response" in event) last = event.response;
    }
    return last ?? ({} as Response);
  };
  return {
    failureOf,
    ask: async (ask) => answerOf(await respond(inputOf(ask), ask)),
    async loop(ask) {
      const input = inputOf(ask);
      for (let round = 0; round < roundsMax; round++) {
        const reply = await respond(input, ask, true);
        const outputs = reply.output.flatMap(outputOf);
        if (outputs.length === 0) return answerOf(reply);
        input.push(...itemsOf(reply), ...outputs);
      }
      throw new Error("the loop has no end");
    },
    async converse(asks) {
      const input: ResponseInputItem[] = [];
      let answer: Answer = { text: "" };
      for (const ask of asks) {
        input.push(...inputOf(ask));
        const reply = await respond(input, ask);
        input.push(...itemsOf(reply));
        answer = answerOf(reply);
      }
      return answer;
    },
  };
}

function inputOf({ text, image }: Ask): ResponseInputItem[] {
  const url = `data:image/png;base64,${image?.toString("base64")}`;
  return [
    {
      role: "user",
      content: [
        { type: "input_text", text },
        ...(image
          ? [{ type: "input_image" as const, detail: "auto" as const, image_url: url }]
          : []),
      ],
    },
  ];
}

/** The items to send back, without what the stream's helper has added to them. */
function itemsOf({ output }: Response): ResponseInputItem[] {
  const added = new Set(["parsed", "parsed_arguments"]);
  const text = JSON.stringify(output, (name, value: unknown) =>
    added.has(name) ? undefined : value,
  );
  return JSON.parse(text) as ResponseInputItem[];
}

function settingsOf({ schema, think, temperature, system }: Ask) {
  return {
    ...(schema && {
      text: { format: { type: "json_schema" as const, name: "place", schema, strict: true } },
    }),
    ...(think && {
      reasoning: { effort: "high" as const, summary: "auto" as const },
      include: ["reasoning.encrypted_content" as const],
    }),
    ...(temperature !== undefined && { temperature }),
    ...(system !== undefined && { instructions: system }),
  };
}

function toolsOf() {
  return {
    tools: localTools.map(({ name, description }) => ({
      type: "function" as const,
      name,
      description,
      parameters: placeSchema,
      strict: true,
    })),
  };
}

function outputOf(item: ResponseOutputItem): ResponseInputItem[] {
  if (item.type !== "function_call") return [];
  const output = runTool(item.name, item.arguments);
  return [{ type: "function_call_output", call_id: item.call_id, output }];
}

function answerOf({ output, usage, status, incomplete_details: details }: Response): Answer {
  const parts = output.flatMap((item) => (item.type === "message" ? item.content : []));
  return {
    text: parts.map((part) => (part.type === "output_text" ? part.text : "")).join(""),
    refusal: parts.map((part) => (part.type === "refusal" ? part.refusal : "")).join(""),
    reasoning: output
      .flatMap((item) => (item.type === "reasoning" ? item.summary : []))
      .map(({ text }) => text)
      .join(""),
    finish: details?.reason ?? status,
    usage: usage && { input: usage.input_tokens, output: usage.output_tokens },
  };
}
