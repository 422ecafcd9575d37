/** A vendor of the responses style, in full strictness. */
import type { RecordedRequest } from "./exchange.ts";
import { doorRefusalAt, errorOf, foreignPrefixes, headers, messageOf } from "./openai.ts";
import { describeUrl, lastTextOf, object, objects, string, textOf, without } from "./read.ts";
import { writeResponse } from "./responses-reply.ts";
import { check } from "./responses-rules.ts";
import { ResponsesStore } from "./responses-store.ts";
import type { Turn } from "./scenario.ts";
import { namedFrame, type StrictStyle, strictStyle } from "./strict.ts";

/** Starts with an empty store: simulations do not share it. */
export function strictResponses(): StrictStyle {
  const store = new ResponsesStore();
  return strictStyle({
    foreignPrefixes,
    headers,
    doorRefusal: doorRefusalAt("/v1/responses", "/v1/responses/compact"),
    check: (request) => check(request, store),
    messageOf,
    errorBody: (error) => ({ error: errorOf(error) }),
    // Nested as in the live interface; its documentation shows it flat.
    errorFrame: (error) =>
      namedFrame({ type: "error", sequence_number: 99, error: errorOf(error) }),
    turnOf: (request) => turnOf(request, store),
    write: (play, turn, context) => writeResponse(play, turn, { ...context, store }),
  });
}

const notSettings = ["model", "input", "instructions", "tools", "stream", "stream_options"];

function turnOf({ json = {} }: RecordedRequest, store: ResponsesStore): Turn {
  const items = store.conversationOf(json);
  const atUser = items.findLastIndex((item) => item["role"] === "user");
  const after = items.slice(atUser + 1);
  const isCompacted = items.findLastIndex(({ type }) => type === "compaction") > atUser;
  // The following item shows that the request was completed.
  const user = isCompacted ? "" : items[atUser]?.["content"];
  const system = items.filter(({ role }) => role === "system" || role === "developer");
  return {
    model: string(json.model),
    stream: json.stream === true,
    text: lastTextOf(user),
    system: [string(json["instructions"]), ...system.map(({ content }) => textOf(content))]
      .filter((text) => text !== "")
      .join("\n"),
    tools: objects(json["tools"]).map((tool) => ({
      name: string(tool["name"]),
      schema: tool["parameters"],
    })),
    toolChoice: toolChoiceOf(json["tool_choice"]),
    parallel: json["parallel_tool_calls"] !== false,
    results: after
      .filter(({ type }) => string(type).endsWith("_output"))
      .map(({ output }) => [textOf(output), ...imagesIn(output)].filter(Boolean).join(" ")),
    rounds: after.filter(
      ({ type }, at) => type === "function_call" && after[at - 1]?.["type"] !== "function_call",
    ).length,
    images: imagesIn(user),
    schema: object(object(json["text"])["format"])["schema"],
    reasoningBlocks: items.filter(({ type }) => type === "reasoning").length,
    settings: without(json, notSettings),
  };
}

function imagesIn(content: unknown): string[] {
  return objects(content)
    .filter((part) => part["type"] === "input_image")
    .map((part) => describeUrl(string(part["image_url"])));
}

function toolChoiceOf(choice: unknown): string {
  if (typeof choice === "string") return choice;
  const { name } = object(choice);
  return typeof name === "string" ? name : "auto";
}
