/**
 * POST /v1/images/generations for models whose vendors make images as tasks: the result is awaited.
 */
import { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import {
  type Customer,
  type Gateway,
  type GatewayOptions,
  startGateway,
} from "../../../support/gateway.ts";
import { startPlainVendor } from "../../../support/plain-vendor.ts";
import { send } from "../../../support/raw-http.ts";
import { adapters } from "../../../unit/provider/task/adapters.ts";
import { startFiles } from "../../../unit/provider/task/result-files.ts";
import type { SimulatedVendor } from "../../../unit/provider/task/simulated.ts";
import { json, errorOf, expectFree, newRequestId, openaiOf } from "../../harness.ts";
import { Leaver } from "../../disconnect/leaver.ts";

const none = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  second: undefined,
  request: undefined,
};
/** 0.04 USD an image. */
const price = { ...none, image: 40_000_000n };
/** 0.01 USD for small images, 0.04 for others but the largest, which have no price. */
const bySize = {
  ...price,
  images: [
    { size: "256x256", image: 10_000_000n },
    { size: "512x512", image: 40_000_000n },
  ],
};
const type = ModelType.IMAGE;
const taskTimings = { pollMs: 10, pollMsMax: 10 };

async function openGateway(options: Omit<GatewayOptions, "taskTimings">) {
  const gateway = await startGateway({ ...options, taskTimings });
  return { gateway, customer: await gateway.customer() };
}

describe("the demo vendor", () => {
  let gateway: Gateway;
  let customer: Customer;
  beforeAll(async () => {
    const demo = (model: string) => ({ type, price, routes: [{ vendor: "demo", model }] });
    ({ gateway, customer } = await openGateway({
      vendors: { demo: { kind: "demo", baseUrl: "" } },
      models: {
        draw: demo("image"),
        slow: demo("slow"),
        broken: demo("none"),
        sized: { ...demo("image"), price: bySize },
      },
    }));
  });
  afterAll(() => gateway?.close());

  const ask = { model: "draw", prompt: "A lighthouse", size: "256x256" as const };

  function generate(body: object, headers: Readonly<Record<string, string>> = {}) {
    return send(`${gateway.url}/v1/images/generations`, {
      headers: {
        authorization: `Bearer ${customer.key}`,
        "content-type": "application/json",
        ...headers,
      },
      body: JSON.stringify(body),
    });
  }

  it("the demo vendor makes images that are read by their addresses, and each is charged", async () => {
    const id = newRequestId();
    const { images } = openaiOf(gateway, customer.key);
    const made = await images.generate({ ...ask, n: 2 }, { headers: { "x-request-id": id } });
    expect(made.created).toBeGreaterThan(1_700_000_000);
    expect(made.data).toHaveLength(2);
    for (const { url = "" } of made.data ?? []) {
      const file = await send(url, { method: "GET" });
      expect(file.headers["content-type"]).toBe("image/png");
      expect(file.body.subarray(1, 4).toString()).toBe("PNG");
    }
    const call = await gateway.call(id);
    expect(call).toMatchObject({
      model: "draw",
      vendor: "demo",
      path: "/v1/images/generations",
      ending: CallEnding.COMPLETED,
    });
    expect(call.cost?.amountNanos).toBe(80_000_000n);
    expect(await gateway.money(customer.accountId)).toMatchObject({ held: 0n });
  });

  it("the demo vendor sends the image as base64, and the cost on request", async () => {
    const got = await generate(
      { ...ask, response_format: "b64_json" },
      { "x-uas-cost": "true", "x-request-id": "mine" },
    );
    expect(got.headers).toMatchObject({ "x-uas-cost": "0.04", "x-request-id": "mine" });
    const [image] = json(got)["data"] as readonly { readonly b64_json: string }[];
    expect(Buffer.from(image?.b64_json ?? "", "base64").toString("latin1", 1, 4)).toBe("PNG");
  });

  it("the demo vendor charges the price of the requested size, and refuses one without a price", async () => {
    const [small, any] = [newRequestId(), newRequestId()];
    const sized = { model: "sized", prompt: "A lighthouse" };
    await generate({ ...sized, size: "256x256" }, { "x-request-id": small });
    await generate(sized, { "x-request-id": any });
    expect((await gateway.call(small)).cost?.amountNanos).toBe(10_000_000n);
    expect((await gateway.call(any)).cost?.amountNanos).toBe(40_000_000n);
    const refused = await generate({ ...sized, size: "1024x1024" });
    expect(refused.status).toBe(400);
    expect(json(refused)).toMatchObject({ error: { param: "size" } });
  });

  it("the demo vendor streams a completed event for each image to the official SDK", async () => {
    const { images } = openaiOf(gateway, customer.key);
    const stream = await images.generate({ ...ask, n: 2, stream: true, partial_images: 2 });
    const events = await Array.fromAsync(stream);
    expect(events.map((each) => each.type)).toEqual([
      "image_generation.completed",
      "image_generation.completed",
    ]);
    expect(events[0]).toMatchObject({ output_format: "png", b64_json: expect.any(String) });
  });

  it("events of images have every member that the SDK's type requires", async () => {
    const { images } = openaiOf(gateway, customer.key);
    const sent = { ...ask, size: "512x512", quality: "high" } as const;
    const [event] = await Array.fromAsync(await images.generate({ ...sent, stream: true }));
    expect(event).toEqual({
      type: "image_generation.completed",
      b64_json: expect.any(String),
      created_at: expect.any(Number),
      output_format: "png",
      size: "512x512",
      // The model has no such parameter.
      ...{ quality: "auto", background: "auto" },
      usage: {
        ...{ input_tokens: 0, output_tokens: 0, total_tokens: 0 },
        input_tokens_details: { image_tokens: 0, text_tokens: 0 },
      },
    });
  });

  it("the demo vendor names what its model has no parameter for, or refuses it where the caller is strict (R-TXT-2)", async () => {
    const more = { ...ask, quality: "high", style: "vivid", background: "auto", user: "u1" };
    const got = await generate(more);
    expect(got.status).toBe(200);
    expect(got.headers["x-uas-dropped"]).toBe("quality, style");
    const strict = await generate(more, { "x-uas-strict": "true" });
    expect(strict.status).toBe(400);
    expect(errorOf(strict)["param"]).toBe("quality");
  });

  it("the demo vendor answers the same images for the same idempotency key, and charges once", async () => {
    const key = { "idempotency-key": newRequestId() };
    const first = await generate(ask, key);
    const again = await expectFree(gateway, customer, () => generate(ask, key));
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(json(again)).toEqual(json(first));
    const other = await generate({ ...ask, prompt: "A boat" }, key);
    expect(other.status).toBe(422);
  });

  it.each([
    ["another size", { size: "1x1" }, 400, "size"],
    ["too many images", { n: 5 }, 400, "n"],
    ["no such form of reply", { response_format: "gif" }, 400, "response_format"],
    ["no prompt", { prompt: null }, 400, "prompt"],
    ["a model that its vendor does not take now", { model: "broken" }, 503, undefined],
  ])("the demo vendor refuses %s, free of charge", async (_name, change, status, param) => {
    const id = newRequestId();
    const got = await expectFree(gateway, customer, () =>
      generate({ ...ask, ...change }, { "x-request-id": id }),
    );
    expect(got.status).toBe(status);
    expect(errorOf(got)).toMatchObject({ message: expect.any(String), code: expect.any(String) });
    if (param !== undefined) expect(errorOf(got)["param"]).toBe(param);
    expect((await gateway.call(id)).cost?.amountNanos ?? 0n).toBe(0n);
  });

  it("402 where the balance does not cover the images", async () => {
    const { key } = await gateway.customer({ balanceNanos: 39_999_999n });
    const got = await generate(ask, { authorization: `Bearer ${key}` });
    expect(got.status).toBe(402);
    expect(errorOf(got)["code"]).toBe("insufficient_balance");
  });

  it("the demo vendor stops the vendor and charges nothing where the client disconnects", async () => {
    const url = new URL(`${gateway.url}/v1/images/generations`);
    const leaver = new Leaver(url, { key: customer.key, body: { ...ask, model: "slow" } });
    const held = async () => (await gateway.money(customer.accountId)).held;
    await expect.poll(held).toBe(40_000_000n);
    await leaver.leave();
    const call = await gateway.call(leaver.requestId);
    expect(call.ending).toBe(CallEnding.CANCELLED);
    expect(call.cost?.amountNanos ?? 0n).toBe(0n);
    await expect.poll(held).toBe(0n);
  });
});

const isImage = (each: (typeof adapters)[number]): boolean =>
  each.type === type && !each.kind.startsWith("openai");

const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
const pngUrl = `data:image/png;base64,${png.toString("base64")}`;

/** Those whose vendors start from an image, and how many they take. */
const editors = new Map<string, { readonly most: number; readonly model?: string }>([
  ["gemini", { most: 14 }],
  ["replicate", { most: 1 }],
  ["fal", { most: 1 }],
  ["dashscope", { most: 3, model: "wan2.5-i2i-preview" }],
]);

describe.each(adapters.filter((each) => isImage(each) && editors.has(each.kind)))(
  "edits of $kind",
  (adapter) => {
    const closing: Array<() => unknown> = [];
    let [gateway, customer, vendor] = [{} as Gateway, {} as Customer, {} as SimulatedVendor];
    beforeAll(async () => {
      vendor = await adapter.start();
      const { kind, secret: apiKey, basePath } = adapter;
      const model = editors.get(kind)?.model ?? adapter.model;
      const origin = await startFiles(vendor.origin, { type: "image/png", bytes: png }, (close) =>
        closing.push(close),
      );
      ({ gateway, customer } = await openGateway({
        vendors: { v: { kind, apiKey, baseUrl: `${origin}${basePath}` } },
        models: { draw: { type, price, routes: [{ vendor: "v", model }] } },
      }));
    });
    beforeEach(() => void vendor.arrived.splice(0));
    afterAll(async () => {
      await gateway.close();
      for (const close of closing) close();
      await vendor.close();
    });
    const edit = (body: object) =>
      send(`${gateway.url}/v1/images/edits`, {
        headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "draw", prompt: "Add a boat", ...body }),
      });

    it("send the vendor the image of the official SDK's form, and are charged", async () => {
      const id = newRequestId();
      const made = await openaiOf(gateway, customer.key).images.edit(
        {
          model: "draw",
          prompt: "Add a boat",
          n: 1,
          response_format: "b64_json",
          // As clients send files whose type they do not know.
          image: await toFile(png, "a.bin", { type: "application/octet-stream" }),
        },
        { headers: { "x-request-id": id } },
      );
      expect(made.data?.[0]?.b64_json).toMatch(/^[\w+/]{8,}={0,2}$/);
      const sent = JSON.stringify(vendor.arrived.map(({ json: body }) => body));
      expect(sent).toContain(png.toString("base64"));
      const call = await gateway.call(id);
      expect(call).toMatchObject({ path: "/v1/images/edits", ending: CallEnding.COMPLETED });
      expect(call.cost?.amountNanos).toBe(40_000_000n);
    });

    it("take JSON with addresses, and stream events of edits", async () => {
      const got = await edit({ images: [{ image_url: pngUrl }], stream: true });
      expect(got.status, got.body.toString()).toBe(200);
      expect(got.body.toString()).toContain('"type":"image_edit.completed"');
      expect(JSON.stringify(vendor.arrived[0]?.json)).toContain(png.toString("base64"));
    });

    it("refuse what the vendor does not take, free of charge", async () => {
      const many = Array.from({ length: (editors.get(adapter.kind)?.most ?? 0) + 1 }, () => pngUrl);
      const refused = [
        [{}, "images"],
        [{ images: [] }, "images"],
        [{ images: [{ file_id: "file-1" }] }, "images[0]"],
        [{ images: many.map((url) => ({ image_url: url })) }, "image"],
        [{ images: [{ image_url: pngUrl }], mask: { file_id: "file-1" } }, "mask"],
        ...(["gemini", "dashscope"].includes(adapter.kind)
          ? [[{ images: [{ image_url: pngUrl }], mask: { image_url: pngUrl } }, "mask"] as const]
          : []),
      ] as const;
      for (const [body, param] of refused) {
        const got = await expectFree(gateway, customer, () => edit(body));
        expect([got.status, errorOf(got)["param"]]).toEqual([400, param]);
      }
      const broken = await toFile(Buffer.from("GIF89a"), "a.gif", { type: "image/gif" });
      const asked = openaiOf(gateway, customer.key).images.edit({
        model: "draw",
        prompt: "Add a boat",
        image: broken,
      });
      await expect(asked).rejects.toMatchObject({ status: 400, param: "image" });
      expect(vendor.arrived).toEqual([]);
    });

    it("are among the endpoints of the model", async () => {
      const got = await send(`${gateway.url}/v1/models/draw`, {
        method: "GET",
        headers: { authorization: `Bearer ${customer.key}` },
      });
      expect(json(got)["endpoints"]).toContain("/v1/images/edits");
    });
  },
);

describe.each(adapters.filter(isImage))("$kind", (adapter) => {
  it("makes an image that the official SDK gets as base64, and charges it", async () => {
    const vendor = await adapter.start();
    onTestFinished(() => vendor.close());
    const { kind, secret: apiKey, basePath, model } = adapter;
    const origin = await startFiles(vendor.origin, { type: "image/png", bytes: png });
    const { gateway, customer } = await openGateway({
      vendors: { v: { kind, apiKey, baseUrl: `${origin}${basePath}` } },
      models: { draw: { type, price, routes: [{ vendor: "v", model }] } },
    });
    onTestFinished(() => gateway.close());
    const id = newRequestId();
    const { prompt } = adapter.least as { prompt: string };
    const made = await openaiOf(gateway, customer.key).images.generate(
      { model: "draw", prompt, n: 1, response_format: "b64_json" },
      { headers: { "x-request-id": id } },
    );
    expect(made.data?.length).toBeGreaterThan(0);
    expect(made.data?.[0]?.b64_json).toMatch(/^[\w+/]{8,}={0,2}$/);
    expect(vendor.begun()).toBe(1);
    const call = await gateway.call(id);
    expect(call).toMatchObject({ vendor: "v", ending: CallEnding.COMPLETED });
    expect(call.cost?.amountNanos).toBe(40_000_000n);
  });
});

it("an image whose vendor refuses the request is an invalid request, as for other calls", async () => {
  const refusal = { detail: [{ loc: ["body", "seed"], msg: "Bad seed", type: "value_error" }] };
  const vendor = await startPlainVendor(() => ({ status: 422, body: JSON.stringify(refusal) }));
  onTestFinished(() => vendor.close());
  const { gateway, customer } = await openGateway({
    vendors: { v: { kind: "fal", apiKey: "sk-fal", baseUrl: vendor.url } },
    models: { draw: { type, price, routes: [{ vendor: "v", model: "fal-ai/flux/dev" }] } },
  });
  onTestFinished(() => gateway.close());
  const got = await send(`${gateway.url}/v1/images/generations`, {
    headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "draw", prompt: "a cat" }),
  });
  expect([got.status, errorOf(got)["code"]]).toEqual([400, "invalid_request"]);
});
