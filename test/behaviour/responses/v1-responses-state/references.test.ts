/**
 * References to objects at a vendor that stores responses under the operator's one key: each
 * belongs to an account, and the vendor gets no request about another account's (R-VND-3).
 */
import type OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bytesPerToken } from "../../../../src/core/limits.ts";
import { type Customer, type Gateway, startGateway } from "../../../support/gateway.ts";
import { type RawReply, send } from "../../../support/raw-http.ts";
import { strictResponses } from "../../../support/upstream/responses-strict.ts";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";
import { errorOf, json, newRequestId } from "../../harness.ts";

let keeper: Upstream;
let plain: Upstream;
let gateway: Gateway;
let customer: Customer;

beforeAll(async () => {
  keeper = await startUpstream({ style: strictResponses() });
  plain = await startUpstream();
  gateway = await startGateway({
    vendors: {
      keeper: {
        kind: "openai",
        dialects: ["responses"],
        baseUrl: keeper.baseUrl,
        apiKey: keeper.secret,
      },
      plain: { baseUrl: plain.baseUrl, apiKey: plain.secret },
    },
    models: {
      kept: { routes: [{ vendor: "keeper", model: "vendor-model" }] },
      translated: { routes: [{ vendor: "plain", model: "vendor-model" }] },
    },
  });
  customer = await gateway.customer();
});
beforeEach(() => keeper.clear());
afterAll(async () => {
  await gateway?.close();
  await keeper?.close();
  await plain?.close();
});

function post(body: object | string, key = customer.key, requestId = "x"): Promise<RawReply> {
  return send(`${gateway.url}/v1/responses`, {
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

/** A response that the vendor keeps for the customer. */
async function kept(stream: boolean): Promise<{ id: string; item: string; tokens: number }> {
  const reply = await post({ model: "kept", input: "My name is Ada", stream });
  expect(reply.status).toBe(200);
  const last = reply.body.toString().split("data: ").at(-1) ?? "";
  const whole = stream ? (JSON.parse(last) as { response: unknown }).response : json(reply);
  const { id, output, usage } = whole as OpenAI.Responses.Response;
  return { id, item: output[0]?.id ?? "", tokens: usage?.total_tokens ?? 0 };
}

const question = { role: "user", content: "What is my name?" };

describe.each([false, true])("an item that the vendor keeps (stream: %s)", (stream) => {
  it.each([
    ["by type", (id: string) => ({ type: "item_reference", id })],
    ["without a type", (id: string) => ({ id })],
    ["with a null for its type", (id: string) => ({ id, type: null })],
  ])("is referred to by its owner, and by nobody else, %s", async (_, reference) => {
    const { item } = await kept(stream);
    const body = { model: "kept", input: [reference(item), question] };
    const before = keeper.requests.length;
    // Whether it takes this spelling is the vendor's affair.
    await post(body);
    expect(keeper.requests).toHaveLength(before + 1);
    const other = await gateway.customer();
    const refused = await post(body, other.key);
    expect(refused.status).toBe(400);
    expect(errorOf(refused)).toMatchObject({ param: "input", code: "invalid_request" });
    expect(errorOf(refused)["message"]).toContain(item);
    expect(keeper.requests).toHaveLength(before + 1);
  });

  it("cannot be had by escapes in names", async () => {
    const { id, item } = await kept(stream);
    const before = keeper.requests.length;
    const { key } = await gateway.customer();
    for (const body of [
      `{"model":"kept","input":"Hm","previous\\u005fresponse_id":"${id}"}`,
      `{"model":"kept","input":[{"type":"item\\u005Freference","id":"${item}"}]}`,
      `{"model":"kept","input":[{"\\u0069d":"${item}"},{"role":"user","content":"a"}]}`,
    ]) {
      expect([(await post(body, key)).status, body]).toEqual([400, body]);
    }
    expect(keeper.requests).toHaveLength(before);
  });

  it("beside previous_response_id is looked up as well", async () => {
    const [{ item }, other] = [await kept(stream), await gateway.customer()];
    const first = json(await post({ model: "kept", input: "Hello" }, other.key));
    const before = keeper.requests.length;
    const input = [{ type: "item_reference", id: item }, question];
    const body = { model: "kept", input, previous_response_id: first["id"] };
    expect((await post(body, other.key)).status).toBe(400);
    expect(keeper.requests).toHaveLength(before);
  });
});

it("an item that another vendor keeps than the model's is a fault of the request", async () => {
  const { item } = await kept(false);
  const input = [{ type: "item_reference", id: item }, question];
  const reply = await post({ model: "translated", input });
  expect(reply.status).toBe(400);
  expect(errorOf(reply)).toMatchObject({ code: "invalid_request" });
});

describe("the money that is held (R-MON-2)", () => {
  /** Of a call with a few bytes, in nano-USD. */
  async function heldFor(body: object): Promise<bigint> {
    const requestId = newRequestId();
    const reply = await post({ max_output_tokens: 16, ...body }, customer.key, requestId);
    expect(reply.status, reply.body.toString()).toBe(200);
    return (await gateway.call(requestId)).held?.amountNanos ?? 0n;
  }

  it("the money that is held is for the whole conversation that previous_response_id brings back", async () => {
    const text = "word ".repeat(20_000);
    const first = json(await post({ model: "translated", input: text }));
    const short = await heldFor({ model: "translated", input: "Go on" });
    const held = await heldFor({
      model: "translated",
      input: "Go on",
      previous_response_id: first["id"],
    });
    const nanosPerToken = 250n;
    expect(held - short).toBeGreaterThan(
      BigInt(Math.floor(text.length / bytesPerToken)) * nanosPerToken,
    );
  });

  it("the money that is held is for what the vendor keeps of the conversation, as it counted", async () => {
    const { id, tokens } = await kept(false);
    expect(tokens).toBeGreaterThan(0);
    const short = await heldFor({ model: "kept", input: "Go on" });
    const held = await heldFor({ model: "kept", input: "Go on", previous_response_id: id });
    expect(held - short).toBeGreaterThanOrEqual(BigInt(tokens) * 250n);
  });
});
