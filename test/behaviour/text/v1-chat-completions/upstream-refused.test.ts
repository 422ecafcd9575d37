/**
 * The gateway's errors for vendors' refusals (R-ERR-3, R-ERR-4): refusals of the operator never
 * reach the customer.
 */
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { bytes, failure, html } from "../../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../../support/upstream/exchange.ts";
import { ask, errorOf, expectFree, newRequestId, useGateway } from "../../harness.ts";

const fixture = useGateway();

const rows: ReadonlyArray<
  [name: string, Behaviour, status: number, code: string, retryAfter?: string]
> = [
  [
    "401: our credential",
    failure(401, { code: "invalid_api_key" }),
    503,
    "service_unavailable",
    "30",
  ],
  ["403: our credential", failure(403), 503, "service_unavailable", "30"],
  ["402: our account", failure(402), 503, "service_unavailable", "30"],
  [
    "429: our account",
    failure(429, { code: "insufficient_quota" }),
    503,
    "service_unavailable",
    "30",
  ],
  ["429", failure(429, {}, { "retry-after": "7" }), 429, "rate_limit_exceeded", "7"],
  ["429 in ms", failure(429, {}, { "retry-after-ms": "1500" }), 429, "rate_limit_exceeded", "2"],
  ["429 without a time", failure(429), 429, "rate_limit_exceeded", "1"],
  ["404: our model name", failure(404, { code: "model_not_found" }), 502, "upstream_error"],
  ["500", failure(500), 502, "upstream_error"],
  ["502 in HTML", html(502), 502, "upstream_error"],
  ["503", failure(503, {}, { "retry-after": "9" }), 503, "upstream_overloaded", "9"],
  ["529", failure(529), 503, "upstream_overloaded", "1"],
  ["200 in HTML", html(200), 502, "upstream_error"],
  ["200 with broken JSON", bytes("oops"), 502, "upstream_error"],
  ["400 in HTML", html(400), 400, "invalid_request"],
  [
    "302",
    bytes("{}", { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
    502,
    "upstream_error",
  ],
];

describe.each([false, true])("stream: %s", (stream) => {
  it.each(rows)(
    "a vendor's refusal is relayed as the rules say: %s",
    async (_name, behaviour, status, code, retryAfter) => {
      fixture.upstream.script(behaviour);
      const id = newRequestId();
      const reply = await expectFree(fixture.gateway, fixture.customer, () =>
        fixture.chat({ ...ask, stream }, { "x-request-id": id }),
      );
      expect(reply.status).toBe(status);
      expect(errorOf(reply)).toMatchObject({ code, message: expect.any(String) });
      expect(reply.body.toString()).not.toMatch(/simulated|quota|DOCTYPE|vendor-model/);
      expect(reply.headers["content-type"]).toMatch(/^application\/json/);
      expect(reply.headers["x-request-id"]).toBe(id);
      if (retryAfter !== undefined) expect(reply.headers["retry-after"]).toBe(retryAfter);
      const call = await fixture.gateway.call(id);
      expect(call).toMatchObject({ status, errorCode: code });
      expect(call.cost?.amountNanos).toBe(0n);
    },
  );

  it.each([400, 413, 422])("passes its %s about the request byte for byte", async (status) => {
    fixture.upstream.script(
      failure(status, { message: "context_length", code: "context_length_exceeded" }),
    );
    const id = newRequestId();
    const reply = await expectFree(fixture.gateway, fixture.customer, () =>
      fixture.chat({ ...ask, stream }, { "x-request-id": id }),
    );
    expect(reply.status).toBe(status);
    const usual = {
      message: "context_length",
      type: "simulated",
      param: null,
      code: "context_length_exceeded",
    };
    expect(reply.body.toString()).toBe(JSON.stringify({ error: usual }, undefined, 2));
    expect(await fixture.gateway.call(id)).toMatchObject({
      ending: CallEnding.UPSTREAM_REFUSED,
      status,
    });
  });
});

it("the operator is alarmed where the vendor refuses the gateway itself (R-ERR-3)", async () => {
  const count = fixture.gateway.log.length;
  fixture.upstream.script(failure(401));
  await fixture.chat(ask);
  const alarms = fixture.gateway.log
    .slice(count)
    .filter((line) => line.includes('"alarm":"credential"'));
  expect(alarms).toHaveLength(1);
  expect(alarms[0]).toContain('"level":50');
});
