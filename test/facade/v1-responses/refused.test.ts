/** POST /v1/responses: refusals in the shape of chat completions (R-ERR-1). */
import { describe, expect, it } from "vitest";
import { bodyBytesMax } from "../../../src/config/limits.ts";
import { errorOf, expectFree, publicModel, useGateway } from "../harness.ts";

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
  ])("$status $type", async ({ status, type, headers, method, body, code }) => {
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
  });
});
