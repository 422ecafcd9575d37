/**
 * POST /v1/images/edits and /variations: forms with images, relayed to vendors of OpenAI's form.
 */
import OpenAI, { toFile } from "openai";
import OpenAIV6 from "openai-v6";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { type FormVendor, startFormVendor } from "../../../support/form-vendor.ts";
import { errorOf, expectFree, newRequestId, useGateway } from "../../harness.ts";

const running: { vendor?: FormVendor } = {};
const png = Buffer.from("89504e470d0a1a0a", "hex");
const made = { created: 1_790_000_000, data: [{ b64_json: png.toString("base64") }] };
beforeAll(async () => {
  running.vendor = await startFormVendor();
});
beforeEach(() => {
  vendor().requests.length = 0;
  vendor().answer = () => ({ body: JSON.stringify(made) });
});
afterAll(() => running.vendor?.close());

function vendor(): FormVendor {
  if (running.vendor === undefined) throw new Error("not started");
  return running.vendor;
}

const price = {
  input: undefined,
  cachedInput: undefined,
  cacheWrite: undefined,
  output: undefined,
  second: undefined,
  request: undefined,
  /** 0.04 USD an image. */
  image: 40_000_000n,
};
const fixture = useGateway(() => ({
  vendors: { compatible: { baseUrl: `${vendor().url}/v1`, apiKey: "sk-vendor" } },
  models: {
    image: {
      type: ModelType.IMAGE,
      routes: [{ vendor: "compatible", model: "vendor-image" }],
      price,
      maxOutputTokens: 0,
    },
    text: {},
  },
}));

describe("the official SDK", () => {
  it.each([
    ["7", OpenAI],
    ["6", OpenAIV6],
  ] as const)("version %s edits and varies images", async (_version, Client) => {
    const baseURL = `${fixture.gateway.url}/v1`;
    const client = new Client({ apiKey: fixture.customer.key, baseURL, maxRetries: 0 });
    const { images } = client as unknown as OpenAI;
    const id = newRequestId();
    const image = [
      await toFile(png, "a.png", { type: "image/png" }),
      await toFile(png, "b.png", { type: "image/png" }),
    ];
    const mask = await toFile(png, "mask.png", { type: "image/png" });
    const edited = await images.edit(
      { model: "image", prompt: "Add a boat", image, mask, n: 1, size: "1024x1024" },
      { headers: { "x-request-id": id } },
    );
    expect(edited).toMatchObject(made);
    const [request] = vendor().requests;
    expect(request?.url).toBe("/v1/images/edits");
    expect(request?.fields).toEqual({
      model: "vendor-image",
      prompt: "Add a boat",
      n: "1",
      size: "1024x1024",
    });
    const files = request?.files.map(({ name, fileName }) => [name, fileName]);
    // The SDK sends them in any order.
    expect(files?.toSorted()).toEqual([
      ["image[]", "a.png"],
      ["image[]", "b.png"],
      ["mask", "mask.png"],
    ]);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ path: "/v1/images/edits", ending: CallEnding.COMPLETED });
    expect(call.cost?.amountNanos).toBe(40_000_000n);
    const [first] = image;
    if (first === undefined) throw new Error("unreachable");
    expect(await images.createVariation({ model: "image", image: first })).toMatchObject(made);
    expect(vendor().requests[1]?.url).toBe("/v1/images/variations");
  });

  it("the official SDK gets a streamed edit", async () => {
    const event = { type: "image_edit.completed", b64_json: "AAAA" };
    const body = `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
    vendor().answer = () => ({ body, type: "text/event-stream" });
    const stream = await fixture.openai.images.edit({
      model: "image",
      prompt: "Add a boat",
      image: await toFile(png, "a.png"),
      stream: true,
    });
    expect(await Array.fromAsync(stream)).toEqual([event]);
  });
});

it("edits of images by address are taken as JSON", async () => {
  const body = { model: "image", prompt: "x", images: [{ image_url: "https://example.com/a" }] };
  const got = await fixture.send("/v1/images/edits", { body: JSON.stringify(body) });
  // The simulated vendor reads forms only.
  expect(got.status).toBe(500);
  expect(errorOf(got)["code"]).toBe("upstream_submit_unknown");
});

describe("refused, free of charge", () => {
  const image = new File([new Uint8Array(png)], "a.png");
  it.each([
    { name: "no image", fields: { prompt: "x", image: undefined }, param: "image" },
    { name: "an empty image", fields: { image: new File([], "a") }, param: "image" },
    { name: "no prompt", fields: { prompt: undefined }, param: "prompt" },
    { name: "no model", fields: { model: undefined }, param: "model" },
    { name: "too many images", fields: { n: "11" }, param: "n" },
    { name: "half an image", fields: { n: "1.5" }, param: "n" },
    { name: "another count", fields: { batch_size: "4" }, param: "batch_size" },
    { name: "a model of text", fields: { model: "text" }, param: "model" },
    { name: "an image as text", fields: { image: "not a file" }, param: "image" },
  ])("an image edit with $name is refused with 400, free of charge", async ({ fields, param }) => {
    const form = new FormData();
    const all = { model: "image", prompt: "x", image, ...fields };
    for (const [name, value] of Object.entries(all)) {
      if (value !== undefined) form.append(name, value);
    }
    const sent = new Response(form);
    const got = await expectFree(fixture.gateway, fixture.customer, async () =>
      fixture.send("/v1/images/edits", {
        headers: { "content-type": sent.headers.get("content-type") ?? "" },
        body: Buffer.from(await sent.arrayBuffer()),
      }),
    );
    expect(got.status).toBe(400);
    expect(errorOf(got)["param"]).toBe(param);
    expect(vendor().requests).toHaveLength(0);
  });

  it("a variation as JSON is a 415", async () => {
    const got = await fixture.send("/v1/images/variations", { body: '{"model":"image"}' });
    expect(got.status).toBe(415);
  });
});
