/** Several routes to one model, and a vendor's limit of calls in flight. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { answer, failure, hang, reset } from "../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../support/upstream/exchange.ts";
import { ask, errorOf, expectFree, newRequestId, publicModel, useGateway } from "../harness.ts";

const second: { upstream?: Upstream } = {};
beforeAll(async () => {
  second.upstream = await startUpstream({ secret: "sk-second-vendor", models: ["second-model"] });
});
beforeEach(() => second.upstream?.clear());
afterAll(async () => {
  await second.upstream?.close();
  expect(second.upstream?.violations).toEqual([]);
});

const fixture = useGateway((upstream) => ({
  vendors: {
    first: { baseUrl: upstream.baseUrl, apiKey: upstream.secret },
    second: { baseUrl: second.upstream?.baseUrl ?? "", apiKey: "sk-second-vendor" },
    away: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "sk-away" },
    small: { baseUrl: upstream.baseUrl, apiKey: upstream.secret, maxInFlight: 1 },
  },
  models: {
    [publicModel]: {
      routes: [
        { vendor: "first", model: "vendor-model" },
        { vendor: "second", model: "second-model" },
      ],
    },
    "away-first": {
      routes: [
        { vendor: "away", model: "x" },
        { vendor: "second", model: "second-model" },
      ],
    },
    "away-only": { routes: [{ vendor: "away", model: "x" }] },
    small: { routes: [{ vendor: "small", model: "vendor-model" }] },
    "small-first": {
      routes: [
        { vendor: "small", model: "vendor-model" },
        { vendor: "second", model: "second-model" },
      ],
    },
  },
}));

it.each([
  ["429", failure(429), "rate_limit_exceeded"],
  ["500", failure(500), "upstream_error"],
  ["503", failure(503), "upstream_overloaded"],
  ["401 about us", failure(401), "service_unavailable"],
] as ReadonlyArray<[string, Behaviour, string]>)(
  "goes on to the next route after %s, and the record says so",
  async (_name, behaviour, errorCode) => {
    fixture.upstream.script(behaviour);
    const id = newRequestId();
    const reply = await fixture.chat(ask, { "x-request-id": id });
    expect(reply.status).toBe(200);
    expect(second.upstream?.last().json?.model).toBe("second-model");
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ vendor: "second", status: 200, errorCode: "" });
    expect(call.cost?.amountNanos).toBe(16_750n);
    expect(call.attempts).toMatchObject([{ vendor: "first", errorCode }]);
    expect(call.attempts[0]?.duration?.nanos).toBeGreaterThan(0);
  },
);

it("a call that its first vendor took names no others", async () => {
  const id = newRequestId();
  await fixture.chat(ask, { "x-request-id": id });
  const call = await fixture.gateway.call(id);
  expect([call.vendor, call.attempts]).toEqual(["first", []]);
});

it("goes on where the first vendor cannot be reached", async () => {
  const reply = await fixture.chat({ ...ask, model: "away-first" });
  expect(reply.status).toBe(200);
});

it.each([
  ["the vendor judged the request", failure(400), 400],
  ["the request may have been done", reset, 502],
] as ReadonlyArray<[string, Behaviour, number]>)(
  "stays where %s",
  async (_name, behaviour, status) => {
    fixture.upstream.script(behaviour);
    expect((await fixture.chat(ask)).status).toBe(status);
    expect(second.upstream?.requests).toHaveLength(0);
  },
);

it("does not change the route once a stream has begun", async () => {
  fixture.upstream.script(answer({ cutAfter: 2, ending: "destroy" }));
  const reply = await fixture.chat({ ...ask, stream: true });
  expect(reply.body.toString()).toContain("upstream_error");
  expect(second.upstream?.requests).toHaveLength(0);
});

it("502: nobody can be reached", async () => {
  const reply = await expectFree(fixture.gateway, fixture.customer, () =>
    fixture.chat({ ...ask, model: "away-only" }),
  );
  expect(reply.status).toBe(502);
  expect(errorOf(reply)["code"]).toBe("upstream_error");
});

it("503 upstream_overloaded over max_in_flight, and the place is given back", async () => {
  fixture.upstream.script(hang);
  const leave = new AbortController();
  const running = fixture.openai.chat.completions
    .create({ ...ask, model: "small" }, { signal: leave.signal })
    .catch(() => {});
  const first = await fixture.upstream.request(1);
  const reply = await fixture.chat({ ...ask, model: "small" });
  expect(reply.status).toBe(503);
  expect(errorOf(reply)).toMatchObject({ code: "upstream_overloaded", type: "api_error" });
  expect(Number(reply.headers["retry-after"])).toBeGreaterThanOrEqual(1);
  // Who is full is not asked: another vendor is.
  const id = newRequestId();
  const other = await fixture.chat({ ...ask, model: "small-first" }, { "x-request-id": id });
  expect(other.status).toBe(200);
  const { vendor, attempts } = await fixture.gateway.call(id);
  expect(vendor).toBe("second");
  expect(attempts).toMatchObject([{ vendor: "small", errorCode: "upstream_overloaded" }]);
  leave.abort();
  await first.left;
  await running;
  await expect
    .poll(() => fixture.chat({ ...ask, model: "small" }).then(({ status }) => status))
    .toBe(200);
});
