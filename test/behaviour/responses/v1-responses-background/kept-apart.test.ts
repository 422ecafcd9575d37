/** Owners of background responses, their refusals, and cancelled or deleted ones. */
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { hang } from "../../../support/upstream/behaviour.ts";
import { unique, useBackground } from "./harness.ts";

const fixture = useBackground();

describe("R-TSK-3: the same Idempotency-Key", () => {
  it("the same Idempotency-Key with the same body is the same response, charged once; with another it is refused", async () => {
    const before = await fixture.settled();
    const key = { "idempotency-key": unique() };
    const body = { model: "chat", input: "Hi", background: true };
    const first = await fixture.post(body, key);
    const { id } = JSON.parse(first.body.toString()) as { id: string };
    await fixture.ended(id);
    const again = await fixture.post({ background: true, input: "Hi", model: "chat" }, key);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(JSON.parse(again.body.toString())).toMatchObject({ id, status: "completed" });
    expect(fixture.vendor.chat.requests).toHaveLength(1);
    const other = await fixture.post({ ...body, input: "Ho" }, key);
    expect(other.status).toBe(422);
    expect(JSON.parse(other.body.toString())).toMatchObject({
      error: { code: "idempotency_key_reused" },
    });
    const after = await fixture.settled();
    const { input, output } = { input: 16n * 250n + 8n * 25n, output: 15n * 2_000n };
    expect(before.balance - after.balance).toBe(input + output);
  });
});

describe("another account", () => {
  it("another account neither gets, cancels, lists nor deletes a response", async () => {
    fixture.vendor.chat.always(hang);
    const asked = { model: "chat", input: "Hi", background: true } as const;
    const { id } = await fixture.openai.responses.create(asked);
    const other = fixture.openaiWith(await fixture.gateway.customer());
    const none = { status: 404, code: "not_found" };
    await expect(other.responses.retrieve(id)).rejects.toMatchObject(none);
    await expect(other.responses.cancel(id)).rejects.toMatchObject(none);
    await expect(other.responses.inputItems.list(id)).rejects.toMatchObject(none);
    await expect(other.responses.delete(id)).rejects.toMatchObject(none);
    expect((await fixture.openai.responses.retrieve(id)).status).toBe("in_progress");
    await fixture.openai.responses.cancel(id);
  });
});

describe("cancel", () => {
  it("cancelling a response that was waited for is a 400 with a remedy", async () => {
    for (const model of ["chat", "responses"]) {
      const { id } = await fixture.openai.responses.create({ model, input: "Hi" });
      await expect(fixture.openai.responses.cancel(id)).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining("close the connection"),
      });
    }
  });
});

describe("delete", () => {
  it("deleting a response that is being made ends it, keeps nothing, and costs its input", async () => {
    const before = await fixture.settled();
    fixture.vendor.chat.always(hang);
    const asked = { model: "chat", input: "Hi", background: true } as const;
    const { id } = await fixture.openai.responses.create(asked);
    const vendor = await fixture.vendor.chat.request(1);
    await fixture.openai.responses.delete(id);
    expect(await vendor.left).toBe(true);
    await expect(fixture.openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    expect((await fixture.settled()).balance).toBeLessThan(before.balance);
  });
});

describe("errors of a request are reported at once, and nothing is held", () => {
  const body = { model: "chat", input: "Hi", background: true };
  it.each([
    ["not kept", { ...body, store: false }, {}, 400, "invalid_request", "store"],
    ["no flag", { ...body, background: "yes" }, {}, 400, "invalid_request", "background"],
    ["unknown", { ...body, model: "none" }, {}, 404, "model_not_found", "model"],
    ["forbidden", { ...body, model: "closed" }, {}, 403, "access_denied", "model"],
    [
      "not carried",
      { ...body, truncation: "auto" },
      { "x-uas-strict": "true" },
      400,
      "invalid_request",
      "truncation",
    ],
    [
      "an id of nobody",
      { ...body, previous_response_id: "resp_none" },
      {},
      400,
      "invalid_request",
      "previous_response_id",
    ],
    [
      "a bad key",
      body,
      { "idempotency-key": "x".repeat(256) },
      400,
      "invalid_request",
      "Idempotency-Key",
    ],
  ])(
    "a background request with this fault is refused at once, and nothing is held: %s",
    async (_, asked, headers, status, code, param) => {
      const before = await fixture.settled();
      const requestId = unique();
      const reply = await fixture.post(asked, { ...headers, "x-request-id": requestId });
      expect(reply.status).toBe(status);
      expect(JSON.parse(reply.body.toString())).toMatchObject({ error: { code, param } });
      expect(await fixture.gateway.call(requestId)).toMatchObject({ ending: CallEnding.REFUSED });
      expect(await fixture.settled()).toEqual(before);
      expect(fixture.vendor.chat.requests).toHaveLength(0);
    },
  );

  it("R-MON-4: an account without the money gets 402, and the call is recorded as refused", async () => {
    const poor = await fixture.gateway.customer({ balanceNanos: 1_000n });
    const requestId = unique();
    const asked = { model: "chat", input: "Hi", background: true } as const;
    const headers = { "x-request-id": requestId };
    await expect(
      fixture.openaiWith(poor).responses.create(asked, { headers }),
    ).rejects.toMatchObject({ status: 402, code: "insufficient_balance" });
    expect(await fixture.gateway.call(requestId)).toMatchObject({ ending: CallEnding.REFUSED });
  });
});
