/** The official SDK against the vendor that is built in: what a first user meets. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type Customer, type Gateway, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { newRequestId } from "../harness.ts";

let gateway: Gateway;
let customer: Customer;
let openai: OpenAI;

const ask = { model: "demo-instant", messages: [{ role: "user" as const, content: "Hello" }] };

beforeAll(async () => {
  const route = (model: string) => ({ routes: [{ vendor: "demo", model }] });
  gateway = await startGateway({
    vendors: { demo: { kind: "demo", baseUrl: "" } },
    models: { "demo-instant": route("instant"), "demo-chat": route("chat") },
  });
  customer = await gateway.customer();
  openai = new OpenAI({ apiKey: customer.key, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
});
afterAll(() => gateway?.close());

it("the demo vendor answers, whole and streamed, with the same words and the same cost", async () => {
  const [first, second] = [newRequestId(), newRequestId()];
  const whole = await openai.chat.completions.create(ask, { headers: { "x-request-id": first } });
  const streamed = await openai.chat.completions
    .stream(ask, { headers: { "x-request-id": second } })
    .finalChatCompletion();
  expect(whole.model).toBe("demo-instant");
  expect(whole.choices[0]?.message.content).toContain("Hello");
  expect(streamed.choices[0]?.message.content).toBe(whole.choices[0]?.message.content);
  const [a, b] = [await gateway.call(first), await gateway.call(second)];
  expect(a.cost?.amountNanos).toBeGreaterThan(0n);
  expect(b.cost?.amountNanos).toBe(a.cost?.amountNanos);
});

it("the demo vendor runs a tool loop", async () => {
  const asked: unknown[] = [];
  const runner = openai.chat.completions.runTools({
    ...ask,
    tools: [
      {
        type: "function",
        function: {
          name: "weather",
          description: "Weather of a city",
          parameters: {
            type: "object",
            properties: { city: { type: "string" } },
            required: ["city"],
          },
          parse: (text: string) => JSON.parse(text) as { city: string },
          function: ({ city }: { city: string }) => {
            asked.push(city);
            return "sunny";
          },
        },
      },
    ],
  });
  expect(await runner.finalContent()).toContain("sunny");
  expect(asked).toHaveLength(1);
});

it("the demo vendor stops when the client leaves", async () => {
  const id = newRequestId();
  const stream = await openai.chat.completions.create(
    { ...ask, model: "demo-chat", stream: true },
    { headers: { "x-request-id": id } },
  );
  for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
  expect((await gateway.call(id)).ending).toBe(CallEnding.CLIENT_GONE);
});

describe("bad input is never a 5xx (R-ERR-7)", () => {
  it.each([
    { messages: [] },
    { messages: [null] },
    { messages: ["x"] },
    { messages: [{ role: "king" }] },
    { messages: [{ role: "user", content: [null] }] },
    { messages: [{ role: "user", content: 5 }] },
    { tools: "x" },
    { tools: [null] },
    { tools: [{ type: "function", function: { name: 5, parameters: { required: 5 } } }] },
    { tools: [{ type: "function", function: { name: "f", parameters: { required: [{}] } } }] },
    { tools: [{ type: "function", function: { name: "f" } }], tool_choice: null },
    { tools: [{ type: "function", function: { name: "f" } }], tool_choice: 5 },
    { tools: [{ type: "function", function: { name: "f", parameters: null } }] },
    { tools: [{}] },
    { tools: [5] },
    { tools: null },
    { stream: true, stream_options: null },
  ])("bad input is never a 5xx: %j", async (change) => {
    const reply = await send(`${gateway.url}/v1/chat/completions`, {
      headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
      body: JSON.stringify({ ...ask, ...change }),
    });
    expect(reply.status, reply.body.toString()).toBeLessThan(500);
    expect(reply.isCut).toBe(false);
  });
});
