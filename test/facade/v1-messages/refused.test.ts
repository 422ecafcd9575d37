/** POST /v1/messages: refusals in the words of the style (R-ERR-1), with its request id (R-ID-3). */
import { describe, expect, it } from "vitest";
import { bodyBytesMax } from "../../../src/config/limits.ts";
import { expectFree, json, publicModel, useGateway } from "../harness.ts";

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
  ])("$status $type", async ({ status, type, headers, method, body, code }) => {
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
  });
});
