/** GET /v1/models[/{id}]: 401, 403, 404, 405. */
import { AuthenticationError, NotFoundError, PermissionDeniedError } from "openai";
import { expect, it } from "vitest";
import { errorOf, useGateway } from "../../harness.ts";

const fixture = useGateway(() => ({ models: { open: {}, "acme/closed": {} } }));

it("401: the list of models needs a key (R-AUTH-5)", async () => {
  for (const path of ["/v1/models", "/v1/models/open", "/api/ai/models"]) {
    const reply = await fixture.send(path, { method: "GET", headers: { authorization: "" } });
    expect(reply.status).toBe(401);
    expect(errorOf(reply)).toMatchObject({
      type: "invalid_request_error",
      code: "invalid_request",
    });
    expect(reply.headers["x-should-retry"]).toBe("false");
  }
  const wrong = fixture.openaiWith("uas_00000000000000000000000000000000").models.list();
  await expect(wrong).rejects.toBeInstanceOf(AuthenticationError);
});

it("403: a model that the key may not use is refused (R-MDL-1)", async () => {
  const { key } = await fixture.gateway.customer({ models: ["open"] });
  const error = await fixture
    .openaiWith(key)
    .models.retrieve("acme/closed")
    .catch((e: unknown) => e);
  expect(error).toBeInstanceOf(PermissionDeniedError);
  expect(error).toMatchObject({ code: "access_denied", type: "access_denied" });
});

it("404: an unknown model is not found", async () => {
  const error = await fixture.openai.models.retrieve("none/such").catch((e: unknown) => e);
  expect(error).toBeInstanceOf(NotFoundError);
  expect(error).toMatchObject({ code: "model_not_found", type: "invalid_request_error" });
});

it("400 or 404: a path that is no text", async () => {
  const reply = await fixture.send("/v1/models/%E0%A4%A", { method: "GET" });
  expect([400, 404]).toContain(reply.status);
  expect(errorOf(reply)["message"]).toEqual(expect.any(String));
});

it("405: a refusal names the methods that there are", async () => {
  const reply = await fixture.send("/v1/models", { method: "POST", body: "{}" });
  expect(reply.status).toBe(405);
  expect(reply.headers["allow"]).toContain("GET");
  expect(errorOf(reply)["code"]).toBe("method_not_allowed");
});
