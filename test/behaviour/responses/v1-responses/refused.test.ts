/** POST /v1/responses: refusals in the shape of chat completions (R-ERR-1). */
import { describe, expect, it } from "vitest";
import { bodyBytesMax } from "../../../../src/core/limits.ts";
import { errorOf, expectFree, publicModel, useGateway } from "../../harness.ts";

const fixture = useGateway();
const ask = JSON.stringify({ model: publicModel, input: "Say hello." });
const unknownKey = "uas_00000000000000000000000000000000";

describe.each(["/v1/responses", "/v1/v1/responses", "/v1/v1/chat/completions"])("%s", (path) => {
  it.each([
    { status: 401, type: "invalid_request_error", headers: { authorization: "" } },
    {
      status: 401,
      type: "invalid_request_error",
      headers: { authorization: "", "x-api-key": unknownKey },
    },
    { status: 405, type: "invalid_request_error", method: "GET", code: "method_not_allowed" },
    {
      status: 413,
      type: "invalid_request_error",
      body: Buffer.alloc(bodyBytesMax + 1, 0x20),
      code: "request_too_large",
    },
    {
      status: 415,
      type: "invalid_request_error",
      headers: { "content-type": "text/plain" },
      code: "unsupported_media_type",
    },
    { status: 400, type: "invalid_request_error", body: "" },
    { status: 400, type: "invalid_request_error", body: ask.slice(0, -1) },
    { status: 400, type: "invalid_request_error", body: "[]" },
  ])(
    "a refusal has status $status and type $type",
    async ({ status, type, headers, method, body, code }) => {
      const reply = await expectFree(fixture.gateway, fixture.customer, () =>
        fixture.send(path, {
          method: method ?? "POST",
          headers: { "x-request-id": "refused", ...headers },
          ...(method === undefined && { body: body ?? ask }),
        }),
      );
      expect(reply.status).toBe(status);
      expect(errorOf(reply)).toEqual({
        type,
        message: expect.any(String),
        code: code ?? "invalid_request",
        param: null,
      });
      expect(reply.headers["x-request-id"]).toBe("refused");
      expect(reply.headers).not.toHaveProperty("request-id");
      expect(reply.headers["x-should-retry"]).toBe(status === 401 ? "false" : undefined);
      expect(reply.body.toString()).not.toContain(unknownKey);
      expect(fixture.upstream.requests).toHaveLength(0);
    },
  );
});

describe("what the body asks for", () => {
  it.each([
    { status: 400, code: "invalid_request", body: ask.replace("{", '{"stream":1,') },
    { status: 400, code: "invalid_request", body: ask.replace("{", '{"max_output_tokens":0,') },
    { status: 404, code: "model_not_found", body: ask.replace(publicModel, "none") },
  ])("a bad body is refused with status $status and code $code", async ({ status, code, body }) => {
    const reply = await fixture.send("/v1/responses", { body });
    expect(reply.status).toBe(status);
    expect(errorOf(reply)).toMatchObject({ code, param: expect.any(String) });
    expect(fixture.upstream.requests).toHaveLength(0);
  });

  it.each([
    { status: 402, code: "insufficient_balance", customer: { balanceNanos: 0n } },
    { status: 403, code: "access_denied", customer: { models: ["other"] } },
  ])(
    "money and rights are refused with status $status and code $code",
    async ({ status, code, customer }) => {
      const { key } = await fixture.gateway.customer(customer);
      const headers = { authorization: `Bearer ${key}` };
      const reply = await fixture.send("/v1/responses", { headers, body: ask });
      expect(reply.status).toBe(status);
      expect(errorOf(reply)).toMatchObject({ type: code, code });
      expect(reply.headers["x-should-retry"]).toBe("false");
    },
  );
});
