/** Several routes to one model, and a vendor's limit of calls in flight. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { startUpstream, type Upstream } from "../../../support/upstream/upstream.ts";
import { answer, failure, hang, html, reset } from "../../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../../support/upstream/exchange.ts";
import { ask, errorOf, expectFree, newRequestId, publicModel, useGateway } from "../../harness.ts";

const second: { upstream?: Upstream } = {};
beforeAll(async () => {
  second.upstream = await startUpstream({ secret: "sk-second-vendor", models: ["second-model"] });
});
beforeEach(() => second.upstream?.clear());
afterAll(async () => {
  await second.upstream?.close();
  expect(second.upstream?.violations).toEqual([]);
});

/**
 * Failures of the first vendor, each with the number of requests that it gets: it is tried once
 * more after a single 5xx or reset. The breakers of the cases do not share state.
 */
const cases: ReadonlyArray<[string, readonly Behaviour[], string]> = [
  ["429", [failure(429)], "rate_limit_exceeded"],
  ["408", [failure(408), failure(408)], "upstream_error"],
  ["500 twice", [failure(500), failure(500)], "upstream_error"],
  ["503 twice", [failure(503), failure(503)], "upstream_overloaded"],
  [
    "529 with a long retry-after",
    [failure(529, {}, { "retry-after": "60" })],
    "upstream_overloaded",
  ],
  ["401 about us", [failure(401)], "service_unavailable"],
  ["404 about our model", [failure(404)], "upstream_error"],
  ["a reset twice", [reset, reset], "upstream_error"],
  ["a page of a proxy twice", [html(), html()], "upstream_error"],
];

const fixture = useGateway((upstream) => ({
  vendors: {
    ...Object.fromEntries(
      cases.map((_case, index) => [
        `case-${index}`,
        { baseUrl: upstream.baseUrl, apiKey: upstream.secret },
      ]),
    ),
    first: { baseUrl: upstream.baseUrl, apiKey: upstream.secret },
    second: { baseUrl: second.upstream?.baseUrl ?? "", apiKey: "sk-second-vendor" },
    away: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "sk-away" },
    small: { baseUrl: upstream.baseUrl, apiKey: upstream.secret, maxInFlight: 1 },
  },
  models: {
    ...Object.fromEntries(
      cases.map((_case, index) => [
        `case-${index}`,
        {
          routes: [
            { vendor: `case-${index}`, model: "vendor-model" },
            { vendor: "second", model: "second-model" },
          ],
        },
      ]),
    ),
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

it.each(cases.map(([name, ...rest], index) => [name, index, ...rest] as const))(
  "after %s the next route takes the call, and the record has every attempt (R-RTE-2, R-RTE-3)",
  async (_name, index, behaviours, errorCode) => {
    fixture.upstream.script(...behaviours);
    const id = newRequestId();
    const body = { ...ask, model: `case-${index}` };
    const reply = await fixture.chat(body, { "x-request-id": id });
    expect(reply.status).toBe(200);
    expect(second.upstream?.last().json?.model).toBe("second-model");
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ vendor: "second", status: 200, errorCode: "" });
    expect(call.cost?.amountNanos).toBe(16_750n);
    expect(call.attempts).toMatchObject(
      behaviours.map(() => ({ vendor: `case-${index}`, errorCode })),
    );
    expect(call.attempts[0]?.duration?.nanos).toBeGreaterThan(0);
  },
);

it("a call that its first vendor took names no others", async () => {
  const id = newRequestId();
  await fixture.chat(ask, { "x-request-id": id });
  const call = await fixture.gateway.call(id);
  expect([call.vendor, call.attempts]).toEqual(["first", []]);
});

it("a vendor that cannot be reached is passed over", async () => {
  const reply = await fixture.chat({ ...ask, model: "away-first" });
  expect(reply.status).toBe(200);
});

it("a request that the vendor refuses as invalid goes to no other route", async () => {
  fixture.upstream.script(failure(400));
  expect((await fixture.chat(ask)).status).toBe(400);
  expect(second.upstream?.requests).toHaveLength(0);
});

it("a stream that has begun does not change its route (R-RTE-2)", async () => {
  fixture.upstream.script(answer({ cutAfter: 2, ending: "destroy" }));
  const reply = await fixture.chat({ ...ask, stream: true });
  expect(reply.body.toString()).toContain("upstream_error");
  expect(second.upstream?.requests).toHaveLength(0);
});

it("502: a call fails when no route can be reached", async () => {
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
  // A vendor at its limit gets no request: another vendor does.
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
