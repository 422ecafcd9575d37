/**
 * POST /v1/messages: refusals in the words of the style (R-ERR-1), with its request id (R-ID-3).
 */
import { describe, expect, it } from "vitest";
import { bodyBytesMax } from "../../../../src/core/limits.ts";
import { expectFree, json, publicModel, useGateway } from "../../harness.ts";

const fixture = useGateway();
const ask = JSON.stringify({
  model: publicModel,
  max_tokens: 16,
  messages: [{ role: "user", content: "Say hello." }],
});
const unknownKey = "uas_00000000000000000000000000000000";
const version = { "anthropic-version": "2023-06-01" };

describe.each(["/v1/messages", "/v1/v1/messages", "/v1/messages?beta=true"])("%s", (path) => {
  it.each([
    { status: 401, type: "authentication_error", headers: { authorization: "" } },
    {
      status: 401,
      type: "authentication_error",
      headers: { authorization: "", "x-api-key": unknownKey },
    },
    { status: 405, type: "invalid_request_error", method: "GET", code: "method_not_allowed" },
    {
      status: 413,
      type: "request_too_large",
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
    { status: 400, type: "invalid_request_error", body: ask.replace(',"max_tokens":16', "") },
    {
      status: 400,
      type: "invalid_request_error",
      body: ask.replace('"max_tokens":16', '"max_tokens":-1'),
    },
    {
      status: 400,
      type: "invalid_request_error",
      body: ask.replace('"messages"', '"stream":"yes","messages"'),
    },
    {
      status: 404,
      type: "not_found_error",
      body: ask.replace(publicModel, "none"),
      code: "model_not_found",
    },
  ])(
    "a refusal has status $status and type $type",
    async ({ status, type, headers, method, body, code }) => {
      const reply = await expectFree(fixture.gateway, fixture.customer, () =>
        fixture.send(path, {
          method: method ?? "POST",
          headers: { ...version, "x-request-id": "refused", ...headers },
          ...(method === undefined && { body: body ?? ask }),
        }),
      );
      expect(reply.status).toBe(status);
      expect(json(reply)).toEqual({
        type: "error",
        error: {
          type,
          message: expect.any(String),
          details: { error_code: code ?? "invalid_request" },
        },
        request_id: "refused",
      });
      expect(reply.headers).toMatchObject({ "x-request-id": "refused", "request-id": "refused" });
      expect(reply.headers["x-should-retry"]).toBe(status === 401 ? "false" : undefined);
      expect(reply.body.toString()).not.toContain(unknownKey);
      expect(fixture.upstream.requests).toHaveLength(0);
    },
  );
});

describe("money and rights", () => {
  it.each([
    {
      status: 402,
      type: "billing_error",
      code: "insufficient_balance",
      customer: { balanceNanos: 0n },
    },
    {
      status: 403,
      type: "permission_error",
      code: "access_denied",
      customer: { models: ["other"] },
    },
  ])(
    "a refusal about money or rights has status $status and type $type",
    async ({ status, type, code, customer }) => {
      const { key } = await fixture.gateway.customer(customer);
      const reply = await fixture.send("/v1/messages", {
        headers: { ...version, authorization: "", "x-api-key": key },
        body: ask,
      });
      expect(reply.status).toBe(status);
      expect(json(reply)).toMatchObject({ error: { type, details: { error_code: code } } });
      expect(reply.headers["x-should-retry"]).toBe("false");
      expect(fixture.upstream.requests).toHaveLength(0);
    },
  );
});
