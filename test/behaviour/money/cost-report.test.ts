/** R-TXT-12: a reply contains its cost if its caller requests it, exactly as on the receipt. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { formatUsd, parseUsd } from "../../../src/core/money.ts";
import { send } from "../../support/raw-http.ts";
import type { Caller } from "../../support/sdk-streams.ts";
import {
  modelOf,
  useStyleGateway,
  type VendorStyle,
  vendorStyles,
} from "../../support/style-gateway.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { endless } from "../../support/upstream/endless.ts";
import { dataOf, newRequestId } from "../harness.ts";

const fixture = useStyleGateway({ holdOutputTokens: 64 });

const callers = ["chat", "responses", "messages"] as const;
const rows = callers.flatMap((caller) =>
  vendorStyles.flatMap((vendor) => [false, true].map((stream) => ({ caller, vendor, stream }))),
);

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

function bodyOf(caller: Caller, model: string, stream: boolean): object {
  const messages = [{ role: "user", content: "Good morning" }];
  if (caller === "responses") return { model, stream, input: "Good morning" };
  return { model, stream, messages, ...(caller === "messages" && { max_tokens: 64 }) };
}

interface Asked {
  readonly key: string;
  readonly caller: Caller;
  readonly vendor: VendorStyle;
  readonly stream: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  /** Members of the body beside the usual ones. */
  readonly more?: object;
}

async function ask({ key, caller, vendor, stream, headers, more }: Asked) {
  const id = newRequestId();
  const reply = await send(`${fixture.gateway.url}${paths[caller]}`, {
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "x-request-id": id,
      ...headers,
    },
    body: JSON.stringify({ ...bodyOf(caller, modelOf(vendor), stream), ...more }),
  });
  expect(reply.status, reply.body.toString()).toBe(200);
  return { id, reply, text: reply.body.toString() };
}

/** The charge on the receipt of a call, in USD. */
async function receiptOf(requestId: string): Promise<string> {
  const { callId } = await fixture.gateway.call(requestId);
  const { receipt } = await fixture.gateway.callLog.getCall({
    call: { case: "callId", value: callId },
  });
  return formatUsd(receipt?.amount?.amountNanos ?? -1n);
}

/** The objects of a reply, whole or streamed. */
function objectsOf(body: Buffer, stream: boolean): string[] {
  return stream ? dataOf(body).filter((data) => data.startsWith("{")) : [body.toString()];
}

/** Every `cost` member as its digits are written: a parsed number might hide a difference. */
function costsIn(text: string): string[] {
  return [...text.matchAll(/"cost":([0-9.eE+-]+)/g)].map(([, digits = ""]) => digits);
}

function usageOf(caller: Caller, json: string): Record<string, unknown> | undefined {
  const object = JSON.parse(json) as Record<string, Record<string, unknown>>;
  const holder = caller === "responses" && "response" in object ? object["response"] : object;
  return holder?.["usage"] as Record<string, unknown> | undefined;
}

const wanted = { "x-uas-cost": "true" };

describe.each(rows)("$caller at a vendor of $vendor, streamed: $stream", (row) => {
  const { caller, vendor, stream } = row;

  it("shows the charge of the receipt, once, next to the usage", async () => {
    const { key } = await fixture.gateway.customer();
    const { id, reply, text } = await ask({ ...row, key, headers: wanted });
    const cost = await receiptOf(id);
    expect(Number(cost)).toBeGreaterThan(0);
    expect(costsIn(text)).toEqual([cost]);
    const [told] = objectsOf(reply.body, stream).filter((json) => costsIn(json).length > 0);
    expect(usageOf(caller, told ?? "{}")).toMatchObject({ cost: Number(cost) });
    expect(reply.headers["x-uas-cost"]).toBe(stream ? undefined : cost);
    if (!stream) expect(Number(reply.headers["content-length"])).toBe(reply.body.length);
    expect(fixture.upstream(vendor).last().headers).not.toHaveProperty("x-uas-cost");
  });

  it.each([{}, { "x-uas-cost": "false" }])("shows nothing with the headers %o", async (headers) => {
    const { key } = await fixture.gateway.customer();
    const { reply, text } = await ask({ ...row, key, headers });
    expect(costsIn(text)).toEqual([]);
    expect(reply.headers).not.toHaveProperty("x-uas-cost");
  });
});

it.each(callers)(
  "but for its cost, a relayed stream of %s has every byte of the vendor",
  async (caller) => {
    const { key } = await fixture.gateway.customer();
    const more = caller === "chat" ? { stream_options: { include_usage: true } } : {};
    const row = { key, caller, vendor: caller, stream: true };
    const plain = await ask({ ...row, more });
    const told = await ask({ ...row, headers: wanted });
    const without = told.text.replace(/,"cost":[0-9.]+/, "");
    expect(without).not.toBe(told.text);
    // The vendor's ids depend on the body.
    const [ours, theirs] = [without, plain.text].map((text) =>
      text.replaceAll(/[0-9a-f]{16,}/g, ""),
    );
    expect(ours).toBe(theirs);
  },
);

it.each(callers)("a stream of %s that ends with its balance shows its charge", async (caller) => {
  fixture.upstream(caller).script(endless(caller, "text"));
  const { key } = await fixture.gateway.customer({ balanceNanos: 400_000n });
  const { id, text } = await ask({ key, caller, vendor: caller, stream: true, headers: wanted });
  expect(costsIn(text)).toEqual([await receiptOf(id)]);
  expect((await fixture.gateway.call(id)).ending).toBe(CallEnding.OUT_OF_BALANCE);
});

it("a reply that costs more than its key may spend shows its charge", async () => {
  const { key } = await fixture.gateway.customer({ keyLimitNanos: 150_000n });
  fixture
    .upstream("chat")
    .script(answer({ usage: { prompt_tokens: 11, completion_tokens: 777, total_tokens: 788 } }));
  const row = { caller: "chat", vendor: "chat", stream: true } as const;
  const { id, text } = await ask({ ...row, key, headers: wanted });
  const cost = await receiptOf(id);
  expect(costsIn(text)).toEqual([cost]);
  expect(parseUsd(cost)).toBeLessThanOrEqual(150_000n);
});

it("a reply whose vendor reports no usage shows its estimated charge in the header", async () => {
  const { key } = await fixture.gateway.customer();
  fixture.upstream("chat").script(answer({ usage: null }));
  const row = { caller: "chat", vendor: "chat", stream: false } as const;
  const { id, reply } = await ask({ ...row, key, headers: wanted });
  expect(reply.headers["x-uas-cost"]).toBe(await receiptOf(id));
  expect(reply.headers["x-uas-cost"]).not.toBe("0");
});

it("a stream that its vendor ends without [DONE] shows its charge", async () => {
  const { key } = await fixture.gateway.customer();
  fixture.upstream("chat").script(answer({ done: false }));
  const row = { caller: "chat", vendor: "chat", stream: true } as const;
  const { id, text } = await ask({ ...row, key, headers: wanted });
  expect(costsIn(text)).toEqual([await receiptOf(id)]);
});

describe("the official SDKs", () => {
  it("show the cost in the raw usage of chat completions and responses", async () => {
    const { key: apiKey } = await fixture.gateway.customer();
    const id = newRequestId();
    const sdk = new OpenAI({
      apiKey,
      baseURL: `${fixture.gateway.url}/v1`,
      maxRetries: 0,
      defaultHeaders: wanted,
    });
    const chat = await sdk.chat.completions.create(
      { model: modelOf("messages"), messages: [{ role: "user", content: "Good morning" }] },
      { headers: { "x-request-id": id } },
    );
    expect(chat.usage).toMatchObject({ cost: Number(await receiptOf(id)) });
    const streamId = newRequestId();
    const stream = sdk.responses.stream(
      { model: modelOf("chat"), input: "Good morning" },
      { headers: { "x-request-id": streamId } },
    );
    const { usage } = await stream.finalResponse();
    expect(usage).toMatchObject({ cost: Number(await receiptOf(streamId)) });
  });

  it("show the cost in the raw usage of messages", async () => {
    const { key: apiKey } = await fixture.gateway.customer();
    const id = newRequestId();
    const baseURL = fixture.gateway.url;
    const sdk = new Anthropic({ apiKey, baseURL, maxRetries: 0, defaultHeaders: wanted });
    const message = await sdk.messages.create(
      {
        model: modelOf("responses"),
        max_tokens: 64,
        messages: [{ role: "user", content: "Good morning" }],
      },
      { headers: { "x-request-id": id } },
    );
    expect(message.usage).toMatchObject({ cost: Number(await receiptOf(id)) });
  });
});
