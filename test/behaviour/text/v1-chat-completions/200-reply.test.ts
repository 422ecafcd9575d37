/** POST /v1/chat/completions, whole replies. */
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { describe, expect, it } from "vitest";
import { answer, bytes, vendorHeaders } from "../../../support/upstream/behaviour.ts";
import { ask, json, newRequestId, publicModel, useGateway } from "../../harness.ts";

const fixture = useGateway();

it("the SDK gets an answer with the public model name", async () => {
  const reply = await fixture.openai.chat.completions.create(ask);
  expect(reply.model).toBe(publicModel);
  expect(reply.choices[0]?.message.content).toBe("Hello there!");
  expect(reply.usage?.total_tokens).toBe(18);
  expect(reply._request_id).toMatch(/^[0-9a-f-]{36}$/);
});

it("the vendor gets its own model, with the operator's credential and nothing of the client's", async () => {
  const headers = {
    cookie: "session=1",
    "openai-organization": "org-client",
    "x-forwarded-for": "9.9.9.9",
  };
  await fixture.chat(ask, headers);
  const { json: body, headers: sent } = fixture.upstream.last();
  expect(body?.model).toBe("vendor-model");
  expect(sent.authorization).toBe(`Bearer ${fixture.upstream.secret}`);
  expect(sent["accept-encoding"] ?? "identity").toBe("identity");
});

it("the vendor's own headers do not reach the client (R-ID-5)", async () => {
  const id = newRequestId();
  const reply = await fixture.chat(ask, { "x-request-id": id });
  for (const [name, value] of Object.entries(vendorHeaders)) {
    expect(reply.headers[name], name).not.toBe(value);
  }
  expect(reply.headers["content-encoding"]).toBeUndefined();
  expect(reply.headers["content-length"]).toBe(String(reply.body.length));
  expect((await fixture.gateway.call(id)).upstreamRequestId).toBe("req_vendor_7f3a");
});

it("unknown members and number spellings pass (R-TXT-1)", async () => {
  const text =
    '{ "id":"x","model" : "vendor-model","n":2.50,"big":1e400,"id64":9223372036854775807,"n":1,' +
    '"choices":[{"index":0,"message":{"role":"assistant","content":"\\u0048i"},"model":"vendor-model"}],' +
    '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}\n';
  fixture.upstream.script(bytes(text));
  const reply = await fixture.chat(ask);
  expect(reply.body.toString()).toBe(
    text.replace('"model" : "vendor-model"', `"model" : "${publicModel}"`),
  );
});

describe("the call's record (R-ID-4)", () => {
  it("the call's record says who, what, how and how much", async () => {
    const id = newRequestId();
    await fixture.chat(ask, { "x-request-id": id });
    const call = await fixture.gateway.call(id);
    expect(call).toMatchObject({
      requestId: id,
      accountId: fixture.customer.accountId,
      keyId: fixture.customer.keyId,
      model: publicModel,
      vendor: "sim",
      status: 200,
      errorCode: "",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
      stream: false,
      path: "/v1/chat/completions",
    });
    expect(call.usage).toMatchObject({ inputTokens: 11, outputTokens: 7 });
    expect(call.cost?.amountNanos).toBe(11n * 250n + 7n * 2_000n);
    expect(call.priceVersion).not.toBe("");
  });

  it("the call's record charges nothing for a reply without content (R-MON-8)", async () => {
    const usage = { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 };
    fixture.upstream.script(answer({ text: [], usage }));
    const id = newRequestId();
    expect((await fixture.chat(ask, { "x-request-id": id })).status).toBe(200);
    expect((await fixture.gateway.call(id)).cost?.amountNanos).toBe(0n);
  });

  it("estimates where the vendor reports no usage (R-MON-8)", async () => {
    fixture.upstream.script(answer({ text: ["12345678", "9"], usage: null }));
    const id = newRequestId();
    const reply = await fixture.chat(ask, { "x-request-id": id });
    expect(json(reply)).not.toHaveProperty("usage");
    const call = await fixture.gateway.call(id);
    const input = Math.ceil(JSON.stringify(ask).length / 4);
    expect(call.usageSource).toBe(UsageSource.ESTIMATED);
    expect(call.usage?.inputTokens).toBe(input);
    // "assistant" is no text that was generated, but a dialect may count it: 9 to 18 bytes.
    expect(call.usage?.outputTokens).toBeGreaterThanOrEqual(3);
    expect(call.usage?.outputTokens).toBeLessThanOrEqual(5);
  });
});
