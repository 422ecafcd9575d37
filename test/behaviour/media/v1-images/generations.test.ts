/** POST /v1/images/generations, relayed to vendors of OpenAI's form. */
import OpenAI from "openai";
import OpenAIV6 from "openai-v6";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { PriceUnit } from "../../../../gen/uas/billing/v1/receipt_pb.ts";
import { type Model, ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { errorOf, expectFree, expectRefused, newRequestId, useGateway } from "../../harness.ts";
import { detachedReplies, Leaver } from "../../disconnect/leaver.ts";

const secret = "sk-images-vendor";
const running: { vendor?: PlainVendor } = {};
const usage = {
  total_tokens: 1_070,
  input_tokens: 14,
  output_tokens: 1_056,
  input_tokens_details: { text_tokens: 14, image_tokens: 0 },
};
const png = Buffer.from("an image").toString("base64");
const reply = {
  created: 1_790_000_000,
  background: "opaque",
  data: [{ b64_json: png }, { b64_json: png }],
  output_format: "png",
  quality: "low",
  size: "1024x1024",
  usage,
  unknown: { kept: 2.5 },
};
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(reply) }));
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => ({ body: JSON.stringify(reply) });
});
afterAll(() => running.vendor?.close());

function vendor(): PlainVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const free = { input: undefined, cachedInput: undefined, cacheWrite: undefined, output: undefined };
const none = { ...free, image: undefined, second: undefined, request: undefined };
/** 5 USD and 40 USD per million tokens. */
const byTokens = { ...none, input: 5_000_000_000n, output: 40_000_000_000n };
const byImage = { ...none, image: 40_000_000n };
/** 0.01 to 0.25 USD by quality, at 1024x1024; 0.30 for other sizes, which only `high` has. */
const byForm = {
  ...none,
  image: 300_000_000n,
  images: [
    { size: "1024x1024", quality: "low", image: 10_000_000n },
    { size: "1024x1024", quality: "medium", image: 40_000_000n },
    { size: "1024x1024", quality: "high", image: 250_000_000n },
    { quality: "high", image: 300_000_000n },
  ],
};
const route = (name: string) => [{ vendor: name, model: "vendor-image" }];
const type = ModelType.IMAGE;
const fixture = useGateway(() => ({
  vendors: {
    compatible: { baseUrl: `${vendor().url}/v1`, apiKey: secret, onDisconnect: "grace" },
    openai: { baseUrl: `${vendor().url}/v1`, apiKey: secret, kind: "openai" },
    anthropic: { baseUrl: vendor().url, apiKey: secret, kind: "anthropic" },
  },
  models: {
    image: { type, routes: route("compatible"), price: byImage, maxOutputTokens: 0 },
    "token-image": { type, routes: route("openai"), price: byTokens, maxOutputTokens: 0 },
    "priced-by-form": { type, routes: route("compatible"), price: byForm, maxOutputTokens: 0 },
    text: { routes: route("compatible") },
    "no-images": { type, routes: route("anthropic"), price: byImage },
  },
}));
const ask = { model: "image", prompt: "A lighthouse", n: 2 };

function generate(body: unknown, headers: Readonly<Record<string, string>> = {}) {
  return fixture.send("/v1/images/generations", { body: JSON.stringify(body), headers });
}

describe("the official SDK", () => {
  it.each([
    ["7", OpenAI],
    ["6", OpenAIV6],
  ] as const)("version %s gets the vendor's images", async (_version, Client) => {
    const baseURL = `${fixture.gateway.url}/v1`;
    const client = new Client({ apiKey: fixture.customer.key, baseURL, maxRetries: 0 });
    const { images } = client as unknown as OpenAI;
    expect(await images.generate({ ...ask, size: "1024x1024" })).toMatchObject(reply);
    const [request] = vendor().requests;
    expect(request?.url).toBe("/v1/images/generations");
    expect(request?.headers.authorization).toBe(`Bearer ${secret}`);
    const sent = { ...ask, model: "vendor-image", size: "1024x1024" };
    expect(JSON.parse(request?.body ?? "")).toEqual(sent);
  });

  it("the official SDK gets partial images and a completed one while they are made, and their tokens are charged", async () => {
    const partial = { type: "image_generation.partial_image", b64_json: png };
    const completed = { type: "image_generation.completed", b64_json: png, usage };
    const events = [{ ...partial, partial_image_index: 0 }, completed];
    const sse = events.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`);
    vendor().answer = () => ({
      headers: { "content-type": "text/event-stream" },
      body: sse.join(""),
    });
    const id = newRequestId();
    const stream = await fixture.openai.images.generate(
      { model: "token-image", prompt: "A boat", stream: true, partial_images: 1 },
      { headers: { "x-request-id": id } },
    );
    expect(await Array.fromAsync(stream)).toEqual(events);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ stream: true, ending: CallEnding.COMPLETED });
    // 14 × 5 + 1,056 × 40 USD per million.
    expect(call.cost?.amountNanos).toBe(42_310_000n);
  });

  it("the official SDK gets the vendor's error in the middle of a stream, and nothing is charged", async () => {
    const error = { type: "error", error: { message: "blocked", code: "moderation_blocked" } };
    vendor().answer = () => ({
      headers: { "content-type": "text/event-stream" },
      body: `event: error\ndata: ${JSON.stringify(error)}\n\n`,
    });
    const failed = async () => {
      const asked = { ...ask, stream: true } as const;
      await Array.fromAsync(await fixture.openai.images.generate(asked));
    };
    await expectFree(fixture.gateway, fixture.customer, () =>
      expect(failed()).rejects.toThrow(/blocked/),
    );
  });
});

it("an image generation changes the model's name and nothing else (R-TXT-1)", async () => {
  const sent = ' {"prompt" : "\\u00e9", "n":2, "model":"image" ,"x":{"model":"image"}} ';
  const answered = ` { "data":[{"url":"https://vendor.test/a"},\n{"url":"b"}], "n": 2.50 }\n`;
  vendor().answer = () => ({ body: answered });
  const id = newRequestId();
  const got = await fixture.send("/v1/images/generations?a=b&api-key=", {
    body: sent,
    headers: { "x-request-id": id },
  });
  expect(got.body.toString()).toBe(answered);
  expect(vendor().requests[0]?.body).toBe(
    sent.replace('"model":"image" ', '"model":"vendor-image" '),
  );
  expect(vendor().requests[0]?.url).toBe("/v1/images/generations?a=b");
  const { cost } = await fixture.gateway.call(id);
  expect(cost?.amountNanos).toBe(80_000_000n);
});

describe("money", () => {
  it("is the price of the images in the reply, not of those requested", async () => {
    vendor().answer = () => ({ body: JSON.stringify({ ...reply, data: [{ b64_json: png }] }) });
    const id = newRequestId();
    const got = await generate(ask, { "x-request-id": id, "x-uas-cost": "true" });
    expect(got.headers["x-uas-cost"]).toBe("0.04");
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      model: "image",
      vendor: "compatible",
      path: "/v1/images/generations",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
    });
    expect(call.cost?.amountNanos).toBe(40_000_000n);
    const { receipt } = await fixture.gateway.callLog.getCall({
      call: { case: "callId", value: call.callId },
    });
    expect(receipt?.lines).toMatchObject([
      { unit: PriceUnit.IMAGE, quantity: "1", price: "0.04", amount: "0.04" },
    ]);
    expect(receipt?.recomputed).toEqual(receipt?.amount);
  });

  it("is estimated by typical tokens where the vendor reports none", async () => {
    vendor().answer = () => ({ body: JSON.stringify({ ...reply, usage: undefined }) });
    const id = newRequestId();
    await generate({ ...ask, model: "token-image" }, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.usage?.outputTokens).toBe(2 * 1_056);
  });

  it("402 where the balance does not cover all requested images, and the vendor is not asked", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 79_999_999n });
    const refused = await generate(ask, { authorization: `Bearer ${key}` });
    expect(refused.status).toBe(402);
    expect(vendor().requests).toHaveLength(0);
  });

  it("is charged for images whose client has disconnected: the vendor makes them all the same", async () => {
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    vendor().answer = async () => {
      asked.resolve();
      await answer.promise;
      return { body: JSON.stringify(reply) };
    };
    const url = new URL(`${fixture.gateway.url}/v1/images/generations`);
    const leaver = new Leaver(url, { key: fixture.customer.key, body: ask });
    await asked.promise;
    await leaver.leave();
    await expect.poll(() => detachedReplies(fixture.gateway)).toBe(1);
    answer.resolve();
    const call = await fixture.gateway.call(leaver.requestId);
    expect(call).toMatchObject({ ending: CallEnding.CLIENT_GONE });
    expect(call.cost?.amountNanos).toBe(80_000_000n);
  });
});

describe("refused, free of charge", () => {
  const { model, prompt } = ask;
  it.each([
    { status: 400, name: "no JSON", body: "{" },
    { status: 400, name: "no prompt", body: { model }, param: "prompt" },
    { status: 400, name: "an empty prompt", body: { model, prompt: " " }, param: "prompt" },
    { status: 400, name: "a prompt that is no text", body: { model, prompt: 5 }, param: "prompt" },
    { status: 400, name: "no model", body: { prompt }, param: "model" },
    { status: 400, name: "no images", body: { ...ask, n: 0 }, param: "n" },
    { status: 400, name: "too many images", body: { ...ask, n: 11 }, param: "n" },
    { status: 400, name: "half an image", body: { ...ask, n: 1.5 }, param: "n" },
    { status: 400, name: "stream as text", body: { ...ask, stream: "yes" }, param: "stream" },
    { status: 400, name: "another count", body: { ...ask, batch_size: 4 }, param: "batch_size" },
    { status: 400, name: "a count twice", body: '{"model":"image","prompt":"x","n":1,"n":9}' },
    { status: 400, name: "a lookalike", body: { ...ask, N: 9 }, param: "N" },
    { status: 400, name: "a model of text", body: { ...ask, model: "text" }, param: "model" },
    { status: 400, name: "a vendor without", body: { ...ask, model: "no-images" }, param: "model" },
    { status: 404, name: "no such model", body: { ...ask, model: "none" }, param: "model" },
    { status: 401, name: "no key", headers: { authorization: "" } },
    { status: 415, name: "no JSON type", headers: { "content-type": "text/plain" } },
    { status: 415, name: "a form", headers: { "content-type": "multipart/form-data; boundary=x" } },
    { status: 405, name: "GET", method: "GET" },
  ])("an image generation with $name is refused with $status, free of charge", async (refusal) => {
    await expectRefused(fixture, "/v1/images/generations", { body: ask, ...refusal });
    expect(vendor().requests).toHaveLength(0);
  });

  it("a vendor's 400 to an image generation passes in its own words (R-ERR-4)", async () => {
    const told =
      '{"error":{"message":"blocked","type":"invalid_request_error","code":"moderation_blocked"}}';
    vendor().answer = () => ({ status: 400, body: told });
    const got = await expectFree(fixture.gateway, fixture.customer, () => generate(ask));
    expect([got.status, got.body.toString()]).toEqual([400, told]);
  });

  it.each([
    ["a reply that is no JSON", { body: "<html>" }, 502],
    ["a reply without images", { body: '{"data":[]}' }, 502],
    [
      "a reply of failed images only",
      { body: '{"data":[{"error":{"code":"x"}},{"url":""},{"url":null}]}' },
      502,
    ],
    ["its own failure", { status: 500, body: "{}" }, 502],
    ["too many requests", { status: 429, body: "{}", headers: { "retry-after": "7" } }, 429],
    ["our key refused", { status: 401, body: "{}" }, 503],
  ])("%s of the image vendor costs nothing", async (_name, answer, status) => {
    vendor().answer = () => answer;
    const got = await expectFree(fixture.gateway, fixture.customer, () => generate(ask));
    expect(got.status).toBe(status);
  });

  it("500 without a retry where the vendor gives no answer: it may be making the images (R-ERR-5)", async () => {
    vendor().answer = () => Promise.reject(new Error("cut"));
    const got = await expectFree(fixture.gateway, fixture.customer, () => generate(ask));
    expect(got.status).toBe(500);
    expect(got.headers["x-should-retry"]).toBe("false");
    expect(errorOf(got)["code"]).toBe("upstream_submit_unknown");
    expect(vendor().requests).toHaveLength(1);
  });
});

describe("a price by size and quality", () => {
  const model = "priced-by-form";
  const usd = (cents: number) => BigInt(cents) * 10_000_000n;
  /** The reply's form as the vendor chose it. */
  const madeAs = (form: object) => {
    const { size: _size, quality: _quality, ...rest } = reply;
    vendor().answer = () => ({
      body: JSON.stringify({ ...rest, data: [{ b64_json: png }], ...form }),
    });
  };

  it.each([
    ["as requested", { size: "1024x1024", quality: "medium" }, {}, 4, 4],
    ["as requested, in any spelling", { size: "1024*1024", quality: "LOW" }, {}, 1, 1],
    [
      "as the vendor chose the quality",
      { size: "1024x1024" },
      { size: "1024x1024", quality: "medium" },
      25,
      4,
    ],
    ["as the vendor chose both", { size: "auto" }, { size: "1024x1024", quality: "low" }, 30, 1],
    ["at the highest where the vendor does not say", {}, {}, 30, 30],
    ["at the highest where the vendor made what has no price", {}, { quality: "ultra" }, 30, 30],
    [
      "at most at the price that was held",
      { size: "1024x1024", quality: "low" },
      { size: "1024x1024", quality: "high" },
      1,
      1,
    ],
  ])(
    "a price by size and quality charges %s, and holds the highest that it can be",
    async (_, asked, made, held, charged) => {
      madeAs(made);
      const id = newRequestId();
      const got = await generate({ model, prompt: "A boat", ...asked }, { "x-request-id": id });
      expect(got.status).toBe(200);
      const call = await fixture.gateway.call(id);
      expect(call.held?.amountNanos).toBe(usd(held));
      expect(call.cost?.amountNanos).toBe(usd(charged));
      const { receipt } = await fixture.gateway.callLog.getCall({
        call: { case: "callId", value: call.callId },
      });
      expect(receipt?.recomputed?.amountNanos).toBe(usd(charged));
      expect(receipt?.lines).toMatchObject([{ unit: PriceUnit.IMAGE }]);
      expect(receipt?.lines).toHaveLength(1);
    },
  );

  it("a price by size and quality charges a stream by what its last event says", async () => {
    const completed = {
      type: "image_generation.completed",
      b64_json: png,
      quality: "medium",
      usage,
    };
    vendor().answer = () => ({
      headers: { "content-type": "text/event-stream" },
      body: `event: ${completed.type}\ndata: ${JSON.stringify(completed)}\n\n`,
    });
    const id = newRequestId();
    const asked = { model, prompt: "A boat", size: "1024x1024", stream: true };
    expect((await generate(asked, { "x-request-id": id })).status).toBe(200);
    expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(usd(4));
  });

  it.each([
    ["quality", { size: "1024x1024", quality: "ultra" }],
    ["size", { size: "512x512", quality: "low" }],
  ])("400, naming %s, where there is none for what is requested", async (param, asked) => {
    const got = await generate({ model, prompt: "A boat", ...asked });
    expect(got.status).toBe(400);
    expect(errorOf(got)).toMatchObject({ param });
    expect(errorOf(got).message).toContain("1024x1024 in medium");
    expect(vendor().requests).toHaveLength(0);
  });

  it("a price by size and quality is listed with the model, the highest as its price", async () => {
    const listed = await fixture.send("/api/ai/models", { method: "GET" });
    const { models } = JSON.parse(listed.body.toString()) as { models: readonly Model[] };
    const price = models.find(({ modelKey }) => modelKey === model)?.price;
    expect(price).toMatchObject({ image: "0.3" });
    expect(price?.images).toHaveLength(4);
    expect(price?.images[3]).toEqual({ quality: "high", price: "0.3" });
  });
});
