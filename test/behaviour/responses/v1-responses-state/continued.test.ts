/** Responses that go on: kept by the gateway for vendors that keep nothing. */
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Customer, type Gateway, startGateway } from "../../../support/gateway.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";

let gateway: Gateway;
let upstream: Upstream;
let customer: Customer;

beforeAll(async () => {
  upstream = await startUpstream();
  gateway = await startGateway({
    vendors: { sim: { baseUrl: upstream.baseUrl, apiKey: upstream.secret } },
  });
  customer = await gateway.customer();
});

afterAll(async () => {
  await gateway?.close();
  await upstream?.close();
  expect(upstream.violations).toEqual([]);
});

function client({ key }: Customer): OpenAI {
  return new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
}

const model = "public-model";

function sentMessages(): unknown {
  return upstream.last().json?.["messages"];
}

it.each([false, true])(
  "previous_response_id brings the conversation back (stream: %s)",
  async (stream) => {
    const openai = client(customer);
    const first = stream
      ? await openai.responses.stream({ model, input: "My name is Ada" }).finalResponse()
      : await openai.responses.create({ model, input: "My name is Ada" });
    const second = await openai.responses.create({
      model,
      input: "What is my name?",
      previous_response_id: first.id,
    });
    expect(sentMessages()).toMatchObject([
      { role: "user", content: "My name is Ada" },
      { role: "assistant", content: first.output_text },
      { role: "user", content: "What is my name?" },
    ]);
    expect(second.previous_response_id).toBe(first.id);
    const stored = await openai.responses.retrieve(second.id);
    expect(stored.output_text).toBe(second.output_text);
    const items = await openai.responses.inputItems.list(second.id);
    expect(items.data).toHaveLength(1);
    await openai.responses.create({ model, input: "And?", previous_response_id: second.id });
    expect(sentMessages()).toHaveLength(5);
  },
);

it("store: false stores nothing, and is not reported as dropped even to a strict caller", async () => {
  const openai = client(customer);
  const { data, response } = await openai.responses
    .create(
      { model, input: "Hello", store: false, metadata: { a: "b" } },
      { headers: { "x-uas-strict": "true" } },
    )
    .withResponse();
  expect(response.headers.get("x-uas-dropped")).toBeNull();
  await expect(openai.responses.retrieve(data.id)).rejects.toMatchObject({ status: 404 });
  const going = openai.responses.create({ model, input: "x", previous_response_id: data.id });
  await expect(going).rejects.toMatchObject({ status: 400, param: "previous_response_id" });
});

it("another account's response is not there", async () => {
  const mine = await client(customer).responses.create({ model, input: "secret" });
  const other = client(await gateway.customer());
  await expect(other.responses.retrieve(mine.id)).rejects.toMatchObject({ status: 404 });
  const going = other.responses.create({ model, input: "x", previous_response_id: mine.id });
  await expect(going).rejects.toMatchObject({ status: 400, param: "previous_response_id" });
});
