/** POST /v1/moderations: passed on unchanged, charged by its input, or free if its price is 0. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { always, priceDefault } from "../../../support/gateway.ts";
import { type PlainVendor, startPlainVendor } from "../../../support/plain-vendor.ts";
import { errorOf, expectFree, json, newRequestId, useGateway } from "../../harness.ts";

const running: { vendor?: PlainVendor } = {};
const reply = { id: "modr-1", model: "omni", results: [{ flagged: false, categories: {} }] };
beforeAll(async () => {
  running.vendor = await startPlainVendor(() => ({ body: JSON.stringify(reply) }));
});
afterAll(() => running.vendor?.close());

const routes = [{ vendor: "openai", model: "omni" }];
const type = ModelType.MODERATION;
const fixture = useGateway(() => ({
  vendors: { openai: { baseUrl: `${running.vendor?.url}/v1`, apiKey: "k", kind: "openai" } },
  models: {
    free: { type, routes, prices: always({ ...priceDefault, input: 0n, output: undefined }) },
    paid: { type, routes },
    "omni-moderation-latest": { type, routes },
    chat: { routes },
  },
}));

it("the official SDK gets moderation results, at the price 0 that the configuration names", async () => {
  const id = newRequestId();
  const got = await fixture.openai.moderations.create(
    { model: "free", input: ["a", "b"] },
    { headers: { "x-request-id": id } },
  );
  expect(got).toMatchObject({ ...reply, model: "free" });
  expect(running.vendor?.requests.at(-1)).toMatchObject({
    url: "/v1/moderations",
    body: '{"model":"omni","input":["a","b"]}',
  });
  expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(0n);
});

it("a moderation that names no model is one of omni-moderation-latest, as with OpenAI", async () => {
  const id = newRequestId();
  const headers = { "x-request-id": id };
  const got = await fixture.openai.moderations.create({ input: "a" }, { headers });
  expect(got.model).toBe("omni-moderation-latest");
  expect(running.vendor?.requests.at(-1)?.body).toBe('{"model":"omni","input":"a"}');
  expect((await fixture.gateway.call(id)).model).toBe("omni-moderation-latest");
});

it("charges what was read where it has a price", async () => {
  const id = newRequestId();
  const body = JSON.stringify({ model: "paid", input: "Hello" });
  await fixture.send("/v1/moderations", { body, headers: { "x-request-id": id } });
  const call = await fixture.gateway.call(id);
  expect(call.usage?.inputTokens).toBe(Math.ceil(body.length / 4));
  expect(call.cost?.amountNanos).toBeGreaterThan(0n);
});

describe("refused, free of charge", () => {
  it.each([
    ["an empty model", { model: "", input: "x" }, "model", 400],
    ["a misspelt model", { modell: "free", input: "x" }, "modell", 400],
    ["neither model nor input", {}, "input", 400],
    ["no input", { model: "free" }, "input", 400],
    ["a model of text", { model: "chat", input: "x" }, "model", 400],
    ["an unknown model", { model: "none", input: "x" }, "model", 404],
  ])("a moderation with %s is refused, free of charge", async (_name, body, param, status) => {
    const headers = { "x-request-id": "refused" };
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.send("/v1/moderations", { body: JSON.stringify(body), headers }),
    );
    expect(got.status).toBe(status);
    expect(errorOf(got)["param"]).toBe(param);
  });

  it("a reply without moderation results is an error, free of charge", async () => {
    const { vendor } = running;
    if (vendor === undefined) throw new Error("not started");
    const before = vendor.answer;
    vendor.answer = () => ({ body: '{"id":"x"}' });
    const body = JSON.stringify({ model: "paid", input: "x" });
    const got = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.send("/v1/moderations", { body, headers: { "x-request-id": newRequestId() } }),
    );
    vendor.answer = before;
    expect([got.status, json(got)["error"]]).toMatchObject([502, { code: "upstream_error" }]);
  });
});
