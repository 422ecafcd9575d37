/**
 * JSON of models and clients passes through a running gateway unchanged: translated, stored and
 * continued (R-TXT-14).
 */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { Role, ToolType } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import { InferenceService } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import { memberOf } from "../../../src/wire/json/source.ts";
import { type NativeGateway, startGeminiGateway } from "../native/gemini-gateway.ts";
import type { Customer } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { dataOf } from "../harness.ts";
import { closeClients, connect } from "../responses/v1-responses/websocket-harness.ts";

const model = "gemini-x";

/** Arguments as no JavaScript would write them, and a schema. */
const args = String.raw`{"7":1.10,"id":2512292042121000001,"1":[-0,1e2,1E400],"t":"caf\u00e9\/","t":"twice"}`;
const schema = String.raw`{"type":"object","properties":{"7":{"enum":[2512292042121000001,1.10,"\u00e9"]},"1":{"default":-0}}}`;

const called = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"f","args": ${args}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"totalTokenCount":13},"responseId":"r1"}`;

let gateway: NativeGateway;
let customer: Customer;

beforeAll(async () => {
  gateway = await startGeminiGateway();
  customer = await gateway.customer();
});
beforeEach(() => {
  gateway.vendor.clear();
  gateway.vendor.answer(({ url }) =>
    url.includes("stream")
      ? { headers: { "content-type": "text/event-stream" }, body: `data: ${called}\r\n\r\n` }
      : { headers: { "content-type": "application/json" }, body: called },
  );
});
afterAll(() => gateway.close());
closeClients();

async function ask(path: string, body?: string): Promise<Buffer> {
  const headers = {
    authorization: `Bearer ${customer.key}`,
    ...(body !== undefined && { "content-type": "application/json" }),
  };
  const method = body === undefined ? "GET" : "POST";
  const reply = await send(`${gateway.url}${path}`, {
    method,
    headers,
    ...(body !== undefined && { body }),
  });
  expect([reply.status, reply.status === 200 ? "" : reply.body.toString()]).toEqual([200, ""]);
  return reply.body;
}

/** Returns the last request of the vendor. */
function sent(): string {
  return gateway.vendor.requests.at(-1)?.body.toString() ?? "";
}

const responsesTools = `"tools":[{"type":"function","name":"f","parameters":${schema}}]`;
const result = (callId: string): string =>
  `[{"type":"function_call_output","call_id":"${callId}","output":"${args.replaceAll(/["\\]/g, String.raw`\$&`)}"}]`;

/** A response as JSON, with its call. */
function callIn(response: string): { id: string; callId: string; args: string } {
  const { id, output } = JSON.parse(response) as {
    id: string;
    output: { call_id: string; arguments: string }[];
  };
  const [call] = output;
  return { id, callId: call?.call_id ?? "", args: call?.arguments ?? "" };
}

it.each([
  ["chat completions", "/v1/chat/completions"],
  ["the platform's alias", "/api/ai/chat/completions"],
])(
  "a call of %s has the vendor's arguments, whole and streamed, and returns them",
  async (_, path) => {
    const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]`;
    const question = '{"role":"user","content":"hi"}';
    const body = (messages: string, more = ""): string =>
      `{"model":"${model}","messages":[${messages}],${tools}${more}}`;
    const whole = JSON.parse((await ask(path, body(question))).toString());
    const [call] = whole.choices[0].message.tool_calls;
    expect(call.function.arguments).toBe(args);
    expect(sent()).toContain(`"parametersJsonSchema":${schema}`);
    const events = dataOf(await ask(path, body(question, ',"stream":true')));
    const streamed = events
      .filter((data) => data !== "[DONE]")
      .map((data) => JSON.parse(data).choices[0]?.delta.tool_calls?.[0].function.arguments ?? "");
    expect(streamed.join("")).toBe(args);
    const history = `${question},${JSON.stringify(whole.choices[0].message)},{"role":"tool","tool_call_id":"${call.id}","content":"ok"}`;
    await ask(path, body(history));
    expect(sent()).toContain(`"args":${args}`);
  },
);

it("a call of messages has the vendor's arguments, and returns them", async () => {
  const tools = `"tools":[{"name":"f","input_schema":${schema}}]`;
  const body = (messages: string): string =>
    `{"model":"${model}","max_tokens":99,"messages":[${messages}],${tools}}`;
  const reply = (await ask("/v1/messages", body('{"role":"user","content":"hi"}'))).toString();
  const block = memberOf(reply, "content").slice(1, -1);
  expect(memberOf(block, "input")).toBe(args);
  const { id } = JSON.parse(block) as { id: string };
  await ask(
    "/v1/messages",
    body(
      `{"role":"user","content":"hi"},{"role":"assistant","content":[${block}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"${id}","content":"ok"}]}`,
    ),
  );
  expect(sent()).toContain(`"args":${args}`);
  expect(sent()).toContain(`"parametersJsonSchema":${schema}`);
});

it("a stored response, its continuation, its items and its references keep arguments", async () => {
  const body = `{"model":"${model}","input":"hi",${responsesTools}}`;
  const first = (await ask("/v1/responses", body)).toString();
  const call = callIn(first);
  expect(call.args).toBe(args);
  expect(first).toContain(`"parameters":${schema}`);
  expect((await ask(`/v1/responses/${call.id}`)).toString()).toBe(first);
  const next = `{"model":"${model}","previous_response_id":"${call.id}","input":${result(call.callId)},${responsesTools}}`;
  const second = callIn((await ask("/v1/responses", next)).toString());
  expect(sent()).toContain(`"args":${args}`);
  // The result is a text of the client's.
  expect(sent()).toContain(`"output":${JSON.stringify(args)}`);
  const page = (await ask(`/v1/responses/${second.id}/input_items`)).toString();
  expect(memberOf(page, "data")).toContain(
    `"output":"${args.replaceAll(/["\\]/g, String.raw`\$&`)}"`,
  );
});

it("a background response keeps arguments and schema, polled and streamed", async () => {
  const ended = async (id: string): Promise<string> => {
    const read = async (): Promise<string> => (await ask(`/v1/responses/${id}`)).toString();
    await expect.poll(async () => memberOf(await read(), "status")).toBe('"completed"');
    return read();
  };
  const body = (more: string): string =>
    `{"model":"${model}","input":"hi","background":true,"metadata":{"7":"a","1":"b"},${responsesTools}${more}}`;
  const queued = (await ask("/v1/responses", body(""))).toString();
  expect(queued).toContain(`"parameters":${schema}`);
  expect(memberOf(queued, "metadata")).toBe('{"7":"a","1":"b"}');
  const whole = await ended((JSON.parse(queued) as { id: string }).id);
  expect(callIn(whole).args).toBe(args);
  expect(whole).toContain(`"parameters":${schema}`);
  const events = dataOf(await ask("/v1/responses", body(',"stream":true')));
  const last = memberOf(events.at(-1) ?? "", "response");
  expect(callIn(last).args).toBe(args);
  expect(last).toContain(`"parameters":${schema}`);
  const { id } = callIn(last);
  await ask(
    "/v1/responses",
    `{"model":"${model}","previous_response_id":"${id}","input":${result(callIn(last).callId)}}`,
  );
  expect(sent()).toContain(`"args":${args}`);
});

it("a conversation over a WebSocket keeps arguments", async () => {
  const client = await connect(gateway.url, customer.key);
  const tools = [{ type: "function", name: "f", parameters: {} }];
  client.create({ model, input: "hi", store: false, tools });
  const last = (await client.until("response.completed")).at(-1);
  const call = callIn(JSON.stringify(last?.["response"]));
  expect(call.args).toBe(args);
  const output = [{ type: "function_call_output", call_id: call.callId, output: "ok" }];
  client.create({ model, input: output, store: false, previous_response_id: call.id, tools });
  await client.until("response.completed");
  expect(sent()).toContain(`"args":${args}`);
});

it("a typed caller gets the vendor's arguments, and its own reach the vendor", async () => {
  const transport = createConnectTransport({
    baseUrl: gateway.url,
    httpVersion: "1.1",
    interceptors: [
      (next) => (request) => {
        request.header.set("authorization", `Bearer ${customer.key}`);
        return next(request);
      },
    ],
  });
  const client = createClient(InferenceService, transport);
  const parts = [{ kind: { case: "text" as const, value: { text: "hi" } } }];
  const kind = { case: "function" as const, value: { name: "f", parametersJson: schema } };
  const user = { role: Role.USER, parts };
  const generation = { model, conversation: { turns: [user], tools: [{ kind }] } };
  const { reply } = await client.generate({ generation });
  expect(sent()).toContain(`"parametersJsonSchema":${schema}`);
  const [part] = reply?.parts ?? [];
  const call = part?.kind.case === "toolCall" ? part.kind.value : undefined;
  expect(call?.input).toBe(args);
  // Bodies of typed callers may have no repeated members.
  const single = args.replace(',"t":"twice"', "");
  if (call !== undefined) call.input = single;
  const value = { toolCallId: call?.id ?? "", parts, plain: true, type: ToolType.FUNCTION };
  const turns = [
    user,
    { role: Role.ASSISTANT, parts: reply?.parts ?? [] },
    { role: Role.USER, parts: [{ kind: { case: "toolResult" as const, value } }] },
  ];
  await client.generate({ generation: { model, conversation: { turns, tools: [{ kind }] } } });
  expect(sent()).toContain(`"args":${single}`);
});
