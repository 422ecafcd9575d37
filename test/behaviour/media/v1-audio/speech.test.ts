/** POST /v1/audio/speech, relayed to vendors of OpenAI's form. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import OpenAI from "openai";
import OpenAIV6 from "openai-v6";
import * as fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { PriceUnit } from "../../../../gen/uas/billing/v1/receipt_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { codePoints } from "../../../../src/dialect/operations/audio.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { expectFree, expectRefused, newRequestId, useGateway } from "../../harness.ts";
import { detachedReplies, Leaver } from "../../disconnect/leaver.ts";

const secret = "sk-speech-vendor";
/** Half a second: 24,000 samples a second of two bytes. */
const audio = Buffer.alloc(24_000, 7);
const spoken = { body: audio, headers: { "content-type": "audio/pcm" } };
const running: { vendor?: PlainVendor; slow?: SlowVendor } = {};
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => spoken);
  running.slow = await startSlowVendor();
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => spoken;
});
afterAll(async () => {
  await running.vendor?.close();
  running.slow?.close();
});

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

/** Sends one piece of audio, and the rest on demand. */
interface SlowVendor {
  readonly url: string;
  finish: () => void;
  /** Breaks the connection off instead. */
  cut: () => void;
  close(): void;
}

async function startSlowVendor(): Promise<SlowVendor> {
  const slow: SlowVendor = { url: "", finish: () => {}, cut: () => {}, close: () => {} };
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "content-type": "audio/mpeg" });
    response.write("first");
    slow.finish = () => response.end("last");
    slow.cut = () => response.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  return Object.assign(slow, {
    url,
    close() {
      server.close();
      server.closeAllConnections();
    },
  });
}

const none = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  image: undefined,
  second: undefined,
  request: undefined,
};
const type = ModelType.AUDIO;
const route = (name: string) => [{ vendor: name, model: "vendor-voice" }];
const fixture = useGateway(() => ({
  vendors: {
    compatible: { baseUrl: `${vendor().url}/v1`, apiKey: secret },
    openai: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai" },
    slow: { baseUrl: running.slow?.url ?? "", onDisconnect: "grace" },
    anthropic: { baseUrl: vendor().url, apiKey: secret, kind: "anthropic" },
  },
  models: {
    /** 15 USD per million characters. */
    voice: { type, routes: route("compatible"), price: { ...none, character: 15_000n } },
    /** 1 USD a second. */
    timed: { type, routes: route("openai"), price: { ...none, second: 1_000_000_000n } },
    /** 0.60 and 12 USD per million tokens. */
    tokens: {
      type,
      routes: route("openai"),
      price: { ...none, input: 600_000_000n, output: 12_000_000_000n },
    },
    slow: { type, routes: route("slow"), price: { ...none, character: 15_000n } },
    text: { routes: route("compatible") },
    "no-voice": { type, routes: route("anthropic"), price: { ...none, character: 15_000n } },
  },
}));
const ask = { model: "voice", voice: "alloy", input: "Héllo 👋" };

function speak(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return fixture.send("/v1/audio/speech", { body: JSON.stringify(body), headers });
}

it.each([
  ["7", OpenAI],
  ["6", OpenAIV6],
] as const)("the official SDK, version %s, gets the vendor's audio", async (_version, Client) => {
  const baseURL = `${fixture.gateway.url}/v1`;
  const client = new Client({ apiKey: fixture.customer.key, baseURL, maxRetries: 0 });
  const { audio: api } = client as unknown as OpenAI;
  const reply = await api.speech.create({ ...ask, response_format: "pcm" });
  expect(reply.headers.get("content-type")).toBe("audio/pcm");
  expect(Buffer.from(await reply.arrayBuffer()).equals(audio)).toBe(true);
  const [request] = vendor().requests;
  expect(request?.url).toBe("/v1/audio/speech");
  expect(request?.headers.authorization).toBe(`Bearer ${secret}`);
  const sent = { ...ask, model: "vendor-voice", response_format: "pcm" };
  expect(JSON.parse(request?.body ?? "")).toEqual(sent);
});

it("speech is sent on while it is made", async () => {
  const url = new URL(`${fixture.gateway.url}/v1/audio/speech`);
  const client = new Leaver(url, { key: fixture.customer.key, body: { ...ask, model: "slow" } });
  await client.got("first");
  running.slow?.finish();
  await client.got("firstlast");
  await client.closed;
  const call = await fixture.gateway.call(client.requestId);
  expect(call).toMatchObject({ stream: true, ending: CallEnding.COMPLETED });
});

it("the connection breaks off where the vendor's audio is cut, so that no client takes it for whole", async () => {
  const url = new URL(`${fixture.gateway.url}/v1/audio/speech`);
  const client = new Leaver(url, { key: fixture.customer.key, body: { ...ask, model: "slow" } });
  await client.got("first");
  running.slow?.cut();
  await client.closed;
  const call = await fixture.gateway.call(client.requestId);
  expect(call.ending).toBe(CallEnding.UPSTREAM_FAILED);
});

describe("money", () => {
  it("is the price of the characters of the text, whatever their bytes", async () => {
    const id = newRequestId();
    await speak(ask, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      model: "voice",
      path: "/v1/audio/speech",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
    });
    expect(call.cost?.amountNanos).toBe(7n * 15_000n);
    const { receipt } = await fixture.gateway.callLog.getCall({
      call: { case: "callId", value: call.callId },
    });
    expect(receipt?.lines).toMatchObject([{ unit: PriceUnit.CHARACTER, quantity: "7" }]);
    expect(receipt?.recomputed).toEqual(receipt?.amount);
  });

  it("is the price of the measured seconds", async () => {
    const id = newRequestId();
    await speak({ ...ask, model: "timed", response_format: "pcm" }, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call.cost?.amountNanos).toBe(500_000_000n);
    expect(call.usageSource).toBe(UsageSource.UPSTREAM);
  });

  it("is estimated by the usual pace where audio cannot be measured", async () => {
    const id = newRequestId();
    const input = "a".repeat(120);
    await speak({ ...ask, input, model: "timed", response_format: "mp3" }, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.cost?.amountNanos).toBe(10_000_000_000n);
  });

  it("is the price of the tokens that an event stream reports", async () => {
    const usage = { input_tokens: 14, output_tokens: 101, total_tokens: 115 };
    const events = [
      { type: "speech.audio.delta", audio: "AAAA" },
      { type: "speech.audio.done", usage },
    ];
    const body = events.map((each) => `data: ${JSON.stringify(each)}\n\n`).join("");
    vendor().answer = () => ({ body, headers: { "content-type": "text/event-stream" } });
    const id = newRequestId();
    const got = await speak(
      { ...ask, model: "tokens", stream_format: "sse" },
      { "x-request-id": id },
    );
    expect(got.body.toString()).toBe(body);
    const call = await fixture.gateway.call(id);
    // 14 × 0.60 + 101 × 12 USD per million.
    expect(call.cost?.amountNanos).toBe(1_220_400n);
    expect(call.usageSource).toBe(UsageSource.UPSTREAM);
  });

  it("402 where the balance does not cover the text", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 104_999n });
    const refused = await speak(ask, { authorization: `Bearer ${key}` });
    expect(refused.status).toBe(402);
    expect(vendor().requests).toHaveLength(0);
  });

  it("is charged for the whole text where the client disconnects in the middle of the audio", async () => {
    const url = new URL(`${fixture.gateway.url}/v1/audio/speech`);
    const client = new Leaver(url, { key: fixture.customer.key, body: { ...ask, model: "slow" } });
    await client.got("first");
    await client.leave();
    await expect.poll(() => detachedReplies(fixture.gateway)).toBe(1);
    running.slow?.finish();
    const call = await fixture.gateway.call(client.requestId);
    expect(call.ending).toBe(CallEnding.CLIENT_GONE);
    expect(call.cost?.amountNanos).toBe(7n * 15_000n);
  });
});

describe("refused, free of charge", () => {
  const { model, input, voice } = ask;
  it.each([
    { status: 400, name: "no JSON", body: "{" },
    { status: 400, name: "no text", body: { model, voice }, param: "input" },
    { status: 400, name: "an empty text", body: { ...ask, input: "" }, param: "input" },
    { status: 400, name: "a list as text", body: { ...ask, input: ["a"] }, param: "input" },
    { status: 400, name: "no model", body: { input, voice }, param: "model" },
    { status: 400, name: "too fast", body: { ...ask, speed: 5 }, param: "speed" },
    { status: 400, name: "a speed as text", body: { ...ask, speed: "1" }, param: "speed" },
    {
      status: 400,
      name: "a format that is no text",
      body: { ...ask, response_format: 3 },
      param: "response_format",
    },
    { status: 400, name: "the text twice", body: '{"model":"voice","input":"a","input":"b"}' },
    { status: 400, name: "a model of text", body: { ...ask, model: "text" }, param: "model" },
    { status: 400, name: "a vendor without", body: { ...ask, model: "no-voice" }, param: "model" },
    { status: 404, name: "no such model", body: { ...ask, model: "none" }, param: "model" },
    { status: 401, name: "no key", headers: { authorization: "" } },
    { status: 415, name: "no JSON type", headers: { "content-type": "text/plain" } },
    { status: 405, name: "GET", method: "GET" },
  ])("speech with $name is refused with $status, free of charge", async (refusal) => {
    await expectRefused(fixture, "/v1/audio/speech", { body: ask, ...refusal });
    expect(vendor().requests).toHaveLength(0);
  });

  it.each([
    ["a refusal", { status: 400, body: '{"error":{"message":"no such voice"}}' }, 400],
    ["JSON instead of audio", { body: "{}" }, 502],
    ["its own failure", { status: 500, body: "{}" }, 502],
    ["our key refused", { status: 401, body: "{}" }, 503],
  ])("%s of the speech vendor costs nothing", async (_name, answer, status) => {
    vendor().answer = () => answer;
    const got = await expectFree(fixture.gateway, fixture.customer, () => speak(ask));
    expect(got.status).toBe(status);
  });
});

it("speech is charged by Unicode code points, as prices count", () => {
  const text = fc.string({ unit: "binary" });
  const isCounted = (each: string): void => expect(codePoints(each)).toBe(Array.from(each).length);
  fc.assert(
    fc.property(text, (each) => {
      isCounted(each);
    }),
  );
});
