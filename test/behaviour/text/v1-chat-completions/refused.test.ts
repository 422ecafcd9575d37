/**
 * POST /v1/chat/completions: 401, 402, 403, 404 as the official SDK sees them (R-ERR-1, R-ERR-2).
 */
import { APIError, AuthenticationError, NotFoundError, PermissionDeniedError } from "openai";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { textWeight, wholeTokens } from "../../../../src/wire/json/text-weight.ts";
import { ask, errorOf, expectFree, newRequestId, useGateway } from "../../harness.ts";
import { changeKnownMs } from "../../../support/patience.ts";

const fixture = useGateway();
const unknownKey = "uas_00000000000000000000000000000000";

async function failureWith(
  key: string,
  body: unknown = ask,
  id = newRequestId(),
): Promise<APIError> {
  const options = { headers: { "x-request-id": id } };
  const error = await fixture
    .openaiWith(key)
    .chat.completions.create(body as typeof ask, options)
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(APIError);
  expect((error as APIError).requestID).toBe(id);
  return error as APIError;
}

describe("401", () => {
  it("refuses unknown, disabled and deleted keys alike (R-AUTH-2)", async () => {
    const { gateway } = fixture;
    const [disabled, deleted] = [await gateway.customer(), await gateway.customer()];
    await gateway.keys.disableKey({ keyId: disabled.keyId });
    await gateway.keys.deleteKey({ keyId: deleted.keyId });
    const bodies: unknown[] = [];
    for (const key of [unknownKey, disabled.key, deleted.key, "nonsense"]) {
      const error = await failureWith(key);
      expect(error).toBeInstanceOf(AuthenticationError);
      expect(error.headers?.get("x-should-retry")).toBe("false");
      bodies.push(error.error);
    }
    expect(new Set(bodies.map((body) => JSON.stringify(body))).size).toBe(1);
    expect(bodies[0]).toMatchObject({
      message: expect.stringContaining("Invalid API Key"),
      type: "invalid_request_error",
      code: "invalid_request",
    });
  });

  it("stops a key that has just worked within a second (R-AUTH-3)", async () => {
    const { key, keyId } = await fixture.gateway.customer();
    await fixture.openaiWith(key).chat.completions.create(ask);
    await fixture.gateway.keys.disableKey({ keyId });
    await expect
      .poll(
        () => fixture.chat(ask, { authorization: `Bearer ${key}` }).then((reply) => reply.status),
        {
          timeout: changeKnownMs,
          interval: 20,
        },
      )
      .toBe(401);
    await fixture.gateway.keys.enableKey({ keyId });
    await expect
      .poll(
        () => fixture.chat(ask, { authorization: `Bearer ${key}` }).then((reply) => reply.status),
        {
          timeout: changeKnownMs,
          interval: 20,
        },
      )
      .toBe(200);
  });

  it("says how to send a key where there is none", async () => {
    const reply = await fixture.chat(ask, { authorization: "" });
    expect(reply.status).toBe(401);
    expect(errorOf(reply)["message"]).toMatch(/Bearer/);
  });
});

describe("402", () => {
  it("says what is needed and what there is, and holds nothing (R-MON-4)", async () => {
    const poor = await fixture.gateway.customer({ balanceNanos: 1_000n });
    const id = newRequestId();
    const error = await expectFree(fixture.gateway, poor, () => failureWith(poor.key, ask, id));
    expect(error).toMatchObject({
      status: 402,
      code: "insufficient_balance",
      type: "insufficient_balance",
    });
    expect(error.message).toContain("0.000001 USD");
    expect(error.headers?.get("x-should-retry")).toBe("false");
    expect(fixture.upstream.requests).toHaveLength(0);
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({ ending: CallEnding.REFUSED, status: 402, priceVersion: "" });
    expect(call.cost?.amountNanos).toBe(0n);
    expect(call.held?.amountNanos).toBe(0n);
  });

  it("refuses an account that never had money", async () => {
    const { key } = await fixture.gateway.customer({ balanceNanos: 0n });
    expect(await failureWith(key)).toMatchObject({ status: 402, code: "insufficient_balance" });
  });

  it("holds only what max_tokens can cost", async () => {
    const body = { ...ask, max_tokens: 1 };
    const id = newRequestId();
    expect((await fixture.chat(body, { "x-request-id": id })).status).toBe(200);
    const needed = (await fixture.gateway.call(id)).held?.amountNanos ?? 0n;
    const input = wholeTokens(textWeight(fixture.upstream.last().body));
    expect(needed).toBe(BigInt(input) * 250n + 2_000n);
    const exact = await fixture.gateway.customer({ balanceNanos: needed });
    const short = await fixture.gateway.customer({ balanceNanos: needed - 1n });
    expect(await failureWith(short.key, body)).toMatchObject({ status: 402 });
    await fixture.openaiWith(exact.key).chat.completions.create(body);
  });
});

it("403: a model that the key may not use is refused and recorded (R-MON-10)", async () => {
  const { key, accountId } = await fixture.gateway.customer({ models: ["other"] });
  const id = newRequestId();
  const error = await failureWith(key, ask, id);
  expect(error).toBeInstanceOf(PermissionDeniedError);
  expect(error).toMatchObject({ code: "access_denied", type: "access_denied" });
  expect(error.message).toContain("Model access denied");
  expect(error.headers?.get("x-should-retry")).toBe("false");
  expect(await fixture.gateway.call(id)).toMatchObject({
    accountId,
    status: 403,
    errorCode: "access_denied",
  });
});

it("404: an unknown model is refused", async () => {
  const error = await failureWith(fixture.customer.key, { ...ask, model: "no/such\u0000model" });
  expect(error).toBeInstanceOf(NotFoundError);
  expect(error).toMatchObject({ code: "model_not_found", type: "invalid_request_error" });
});
