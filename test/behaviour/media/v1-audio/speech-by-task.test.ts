/** POST /v1/audio/speech for models whose vendors make speech as tasks: the result is awaited. */
import { createOpenAI } from "@ai-sdk/openai";
import { generateSpeech } from "ai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import {
  type Customer,
  type Gateway,
  priceDefault,
  startGateway,
} from "../../../support/gateway.ts";
import { send } from "../../../support/raw-http.ts";
import { adapters } from "../../../unit/provider/task/adapters.ts";
import { startFiles } from "../../../unit/provider/task/result-files.ts";
import type { SimulatedVendor } from "../../../unit/provider/task/simulated.ts";
import { errorOf, expectFree, json, newRequestId, openaiOf } from "../../harness.ts";

const type = ModelType.AUDIO;
const none = {
  ...priceDefault,
  ...{ input: undefined, cachedInput: undefined, cacheWrite: undefined, output: undefined },
};

/** Two seconds of silence. */
const wav = Buffer.alloc(44 + 32_000);
wav.write("RIFF", 0);
wav.write("WAVEfmt ", 8);
wav.writeUInt32LE(16, 16);
wav.writeUInt32LE(16_000, 28);
wav.write("data", 36);
wav.writeUInt32LE(32_000, 40);

const speakers = adapters.filter(
  (each) => each.type === type && ["fal", "replicate"].includes(each.kind),
);

describe.each(speakers)("speech of $kind", (adapter) => {
  const closing: Array<() => unknown> = [];
  let [gateway, customer, vendor] = [{} as Gateway, {} as Customer, {} as SimulatedVendor];
  beforeAll(async () => {
    vendor = await adapter.start();
    const { kind, secret: apiKey, basePath, model } = adapter;
    const file = { type: "audio/wav", bytes: wav };
    const origin = await startFiles(vendor.origin, file, (close) => closing.push(close));
    const routes = [{ vendor: "v", model }];
    gateway = await startGateway({
      taskTimings: { pollMs: 10, pollMsMax: 10 },
      vendors: { v: { kind, apiKey, baseUrl: `${origin}${basePath}` } },
      models: {
        voice: { type, routes, price: { ...none, character: 100_000n } },
        timed: { type, routes, price: { ...none, second: 1_000_000n } },
      },
    });
    customer = await gateway.customer();
  });
  beforeEach(() => void vendor.arrived.splice(0));
  afterAll(async () => {
    await gateway.close();
    for (const close of closing) close();
    await vendor.close();
  });

  const ask = { model: "voice", input: "Good mörning. 👋", voice: "calm" };
  const speak = (body: object, headers: Readonly<Record<string, string>> = {}) =>
    send(`${gateway.url}/v1/audio/speech`, {
      headers: {
        authorization: `Bearer ${customer.key}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify({ ...ask, ...body }),
    });

  it("is the vendor's file for the official SDK, and its characters are charged", async () => {
    const id = newRequestId();
    const { audio } = openaiOf(gateway, customer.key);
    const made = await audio.speech.create(
      { ...ask, speed: 1.5 },
      { headers: { "x-request-id": id } },
    );
    expect(made.headers.get("content-type")).toBe("audio/wav");
    expect(Buffer.from(await made.arrayBuffer()).equals(wav)).toBe(true);
    const [asked] = vendor.arrived;
    const input = (asked?.json?.["input"] ?? asked?.json) as object;
    expect(input).toEqual({ text: ask.input, voice: "calm", speed: 1.5 });
    const call = await gateway.call(id);
    expect(call).toMatchObject({
      vendor: "v",
      path: "/v1/audio/speech",
      ending: CallEnding.COMPLETED,
      usage: { characters: 15 },
    });
    expect(call.cost?.amountNanos).toBe(1_500_000n);
    expect(await gateway.money(customer.accountId)).toMatchObject({ held: 0n });
  });

  it("is made by the AI SDK, whose format is dropped because the model decides it", async () => {
    const openai = createOpenAI({ apiKey: customer.key, baseURL: `${gateway.url}/v1` });
    const made = await generateSpeech({
      model: openai.speech("voice"),
      text: ask.input,
      voice: ask.voice,
    });
    expect(Buffer.from(made.audio.uint8Array).equals(wav)).toBe(true);
    const got = await speak({ response_format: "mp3", instructions: "softly" });
    expect(got.headers["x-uas-dropped"]).toBe("response_format, instructions");
    const strict = await speak({ response_format: "mp3" }, { "x-uas-strict": "true" });
    expect([strict.status, errorOf(strict)["param"]]).toEqual([400, "response_format"]);
  });

  it("is charged by its actual length where a second has a price, and needs no duration", async () => {
    const id = newRequestId();
    const got = await speak({ model: "timed" }, { "x-request-id": id, "x-uas-cost": "true" });
    expect(got.status, got.body.toString()).toBe(200);
    expect((await gateway.call(id)).cost?.amountNanos).toBe(2_000_000n);
    expect(got.headers["x-uas-cost"]).toBe("0.002");
  });

  it("holds what a long text takes to speak at most, where a second has a price", async () => {
    const { key } = await gateway.customer({ balanceNanos: 60_000_000n });
    const authorization = `Bearer ${key}`;
    const long = { model: "timed", input: "a".repeat(200) };
    const refused = await speak(long, { authorization });
    expect([refused.status, errorOf(refused)["code"]]).toEqual([402, "insufficient_balance"]);
    expect(vendor.arrived).toEqual([]);
    const faster = await speak({ ...long, speed: 4 }, { authorization });
    expect(faster.status).toBe(200);
  });

  it("comes as events where the request asks for them", async () => {
    const got = await speak({ stream_format: "sse" });
    expect(got.headers["content-type"]).toMatch(/^text\/event-stream/);
    const events = got.body
      .toString()
      .split("\n\n")
      .flatMap((each) => /^data: (.*)$/m.exec(each)?.[1] ?? [])
      .map((each) => JSON.parse(each) as { type: string; audio?: string });
    expect(events.map((each) => each.type)).toEqual(["speech.audio.delta", "speech.audio.done"]);
    expect(Buffer.from(events[0]?.audio ?? "", "base64").equals(wav)).toBe(true);
    expect(events[1]).toMatchObject({ usage: { total_tokens: 0 } });
  });

  it("takes parameters of the model, and those that only it has in extra", async () => {
    expect((await speak({ extra: { emotion: "happy" } })).status).toBe(200);
    expect(JSON.stringify(vendor.arrived[0]?.json)).toContain('"emotion":"happy"');
  });

  it.each([
    ["no text", { input: undefined }, "input"],
    ["an empty text", { input: "" }, "input"],
    ["a speed that no vendor has", { speed: 9 }, "speed"],
    ["a voice that is none", { voice: 3 }, "voice"],
    ["no such form of events", { stream_format: "mp3" }, "stream_format"],
  ])("refuses %s, free of charge and without asking the vendor", async (_name, change, param) => {
    const got = await expectFree(gateway, customer, () => speak(change));
    expect([got.status, errorOf(got)["param"]]).toEqual([400, param]);
    expect(vendor.arrived).toEqual([]);
  });

  it("that the vendor refuses costs nothing, and says why", async () => {
    vendor.next(adapter.says.invalid);
    const got = await expectFree(gateway, customer, () => speak({}));
    expect(got.status).toBe(400);
    expect(errorOf(got)).toMatchObject({ message: expect.any(String), code: expect.any(String) });
  });

  it("is the same for the same idempotency key, and charged once", async () => {
    const key = { "idempotency-key": newRequestId() };
    const first = await speak({}, key);
    const again = await expectFree(gateway, customer, () => speak({}, key));
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(again.body.equals(first.body)).toBe(true);
  });

  it("is among the endpoints of its models, and recordings are not", async () => {
    const got = await send(`${gateway.url}/v1/models/voice`, {
      method: "GET",
      headers: { authorization: `Bearer ${customer.key}` },
    });
    expect(json(got)["endpoints"]).toEqual(["/v1/audio/speech", "/api/ai/tasks"]);
  });
});
