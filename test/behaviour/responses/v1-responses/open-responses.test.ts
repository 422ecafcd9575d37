/**
 * Requirements of the compliance suite of Open Responses (openresponses.org, August 2026), applied
 * to models whose vendors speak other styles: its requests, and the schema of every reply and
 * event.
 */
import { describe, expect, it } from "vitest";
import { missingMembers } from "../../../unit/dialect/responses/published.ts";
import { faultsOfEvent, faultsOfResponse } from "../../../unit/dialect/responses/schema.ts";
import { modelOf, useStyleGateway, vendorStyles } from "../../../support/style-gateway.ts";
import { dataOf } from "../../harness.ts";
import { send } from "../../../support/raw-http.ts";
import { closeClients, connect, type Message } from "./websocket-harness.ts";

const fixture = useStyleGateway();
closeClients();

type Json = Readonly<Record<string, unknown>>;

const translated = vendorStyles.filter((style) => style !== "responses");

const message = (role: string, content: unknown, more: Json = {}) => ({
  type: "message",
  role,
  content,
  ...more,
});
const weather = {
  type: "function",
  name: "get_weather",
  description: "Get the current weather for a location",
  parameters: {
    type: "object",
    properties: { location: { type: "string", description: "The city" } },
    required: ["location"],
  },
};
const dot =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Requests that every server completes. */
const requests: Readonly<Record<string, Json>> = {
  "a text": { input: [message("user", "Say hello in exactly 3 words.")] },
  "a history that begins with an assistant's phases": {
    input: [
      message("assistant", "I should answer with the saved number.", { phase: "commentary" }),
      message("assistant", "The number is four.", { phase: "final_answer" }),
      message("user", "Repeat only the number."),
    ],
  },
  "a system message": {
    input: [message("system", "You are a pirate."), message("user", "Say hello.")],
  },
  "an image": {
    input: [
      message("user", [
        { type: "input_text", text: "What do you see? Answer in one sentence." },
        { type: "input_image", image_url: dot },
      ]),
    ],
  },
  "several turns": {
    input: [
      message("user", "My name is Alice."),
      message("assistant", "Hello Alice! How can I help you today?"),
      message("user", "What is my name?"),
    ],
  },
  // The simulated vendors call a tool if the text requests it.
  "a tool": { input: [message("user", "call get_weather for San Francisco")], tools: [weather] },
};

async function open() {
  const { key } = await fixture.gateway.customer();
  const post = async (path: string, body: Json) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = { method: "POST", headers, body: JSON.stringify(body) };
    return send(`${fixture.gateway.url}${path}`, request);
  };
  const socket = () => connect(fixture.gateway.url, key);
  return { post, socket };
}

function parse(text: string): Json {
  return JSON.parse(text) as Json;
}

/** Checks the events of a completed response. @returns it */
function completed(events: readonly Json[]): Json {
  expect(events.flatMap(faultsOfEvent)).toEqual([]);
  const last = events.at(-1) ?? {};
  expect(last).toMatchObject({ type: "response.completed", response: { status: "completed" } });
  return last["response"] as Json;
}

describe.each(translated)("a model whose vendor speaks %s", (style) => {
  const model = modelOf(style);
  const turn = async (client: Awaited<ReturnType<typeof connect>>, members: Json) => {
    client.create({ model, store: false, ...members });
    return client.until("response.completed", "response.incomplete");
  };

  it.each(Object.entries(requests))("completes %s, whole and streamed", async (_, request) => {
    const { post } = await open();
    const whole = await post("/v1/responses", { model, ...request });
    expect(whole.status, whole.body.toString()).toBe(200);
    const response = parse(whole.body.toString());
    expect(faultsOfResponse(response)).toEqual([]);
    const type = "tools" in request ? "function_call" : "message";
    expect(response).toMatchObject({ status: "completed", output: [{ type }] });
    const stream = await post("/v1/responses", { model, ...request, stream: true });
    const events = dataOf(stream.body).map(parse);
    expect(completed(events)["output"]).toMatchObject([{ type }]);
    const types = events.map((event) => event["type"]);
    const delta = "tools" in request ? "function_call_arguments" : "output_text";
    expect(types).toEqual(
      expect.arrayContaining([
        "response.output_item.added",
        `response.${delta}.delta`,
        `response.${delta}.done`,
        "response.output_item.done",
      ]),
    );
  });

  it("continues responses that are not stored on the same WebSocket, one after the other", async () => {
    const { socket } = await open();
    const client = await socket();
    const { id } = completed(await turn(client, { input: "The code word is cobalt." }));
    const next = completed(await turn(client, { previous_response_id: id, input: "Which?" }));
    expect(next["previous_response_id"]).toBe(id);
    completed(await turn(client, { input: "And from the beginning." }));
  });

  it("knows an unstored response on no other WebSocket, on which a new one begins", async () => {
    const { socket } = await open();
    const { id } = completed(await turn(await socket(), { input: "The code word is copper." }));
    const other = await socket();
    const lost = await turn(other, { previous_response_id: id, input: "Which?" });
    expect(lost).toMatchObject([{ type: "error", error: { code: "previous_response_not_found" } }]);
    completed(await turn(other, { input: [message("user", "Begin again.")] }));
  });

  it("forgets an unstored response whose continuation failed", async () => {
    const { socket } = await open();
    const client = await socket();
    const { id } = completed(await turn(client, { input: "The code word is ember." }));
    const output = { type: "function_call_output", call_id: "call_missing", output: "none" };
    const failed = await turn(client, { previous_response_id: id, input: [output] });
    expect(failed.at(-1)).toMatchObject({ type: "error" });
    const stale = await turn(client, { previous_response_id: id, input: "Which?" });
    expect(stale).toMatchObject([
      { type: "error", error: { code: "previous_response_not_found" } },
    ] satisfies Array<Partial<Message>>);
  });

  it("compacts a conversation, from which a WebSocket goes on", async () => {
    const { post, socket } = await open();
    const input = [
      message("user", [{ type: "input_text", text: "The code word is slate." }]),
      message("assistant", [{ type: "output_text", text: "OK." }]),
    ];
    const compacted = await post("/v1/responses/compact", { model, prompt_cache_key: "k", input });
    expect(compacted.status, compacted.body.toString()).toBe(200);
    const body = parse(compacted.body.toString());
    expect(body["object"]).toBe("response.compaction");
    const output = body["output"] as Json[];
    const made = output.filter(({ type }) => type === "compaction");
    expect(made).toHaveLength(1);
    expect(missingMembers({ ...body, output: made })).toEqual([]);
    const rest = [...output, message("user", "Which code word?")];
    completed(await turn(await socket(), { input: rest, tools: [] }));
  });
});

it("a compaction without a model is a 400", async () => {
  const { post } = await open();
  const refused = await post("/v1/responses/compact", { input: [message("user", "Compact.")] });
  expect(refused.status).toBe(400);
});
