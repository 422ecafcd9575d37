/**
 * `background: true` of responses: real HTTP, real database, real money, the official SDKs, strict
 * vendors.
 */
import type OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../../gen/uas/billing/v1/call_pb.ts";
import { UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { heldBack } from "../../../support/upstream/held-back.ts";
import { failure, hang } from "../../../support/upstream/behaviour.ts";
import { strictResponses } from "../../../support/upstream/responses-strict.ts";
import { openaiV6, unique, useBackground } from "./harness.ts";

const fixture = useBackground();

const greeting = "Hello there, Grüße 🌍!";
const sdks: ReadonlyArray<readonly [string, () => OpenAI]> = [
  ["7", () => fixture.openai],
  ["6", () => openaiV6(fixture)],
];

describe.each(sdks)("the official SDK %s", (_version, sdk) => {
  it.each(["responses", "chat"])("gets what the vendor of %s makes, later", async (model) => {
    const openai = sdk();
    const before = await fixture.settled();
    const requestId = unique();
    const begun = await openai.responses.create(
      { model, input: "Hi", background: true, metadata: { order: "7" } },
      { headers: { "x-request-id": requestId } },
    );
    expect(begun).toMatchObject({ object: "response", background: true, model, output: [] });
    expect(begun).toMatchObject({ metadata: { order: "7" }, usage: null, error: null });
    expect(begun.status).toBe("queued");
    const made = await fixture.ended(begun.id, openai);
    const { id, created_at: created } = begun;
    expect(made).toMatchObject({ id, created_at: created, model, background: true });
    expect(made).toMatchObject({ status: "completed", output_text: greeting });
    expect(made.usage).toMatchObject({ input_tokens: 24, output_tokens: 15 });
    expect((await openai.responses.inputItems.list(id)).data).toMatchObject([
      { type: "message", role: "user", content: [{ type: "input_text", text: "Hi" }] },
    ]);
    expect(await openai.responses.cancel(id)).toMatchObject({ id, status: "completed" });
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      path: "/v1/responses",
      ending: CallEnding.COMPLETED,
      usageSource: UsageSource.UPSTREAM,
      stream: false,
    });
    // One record and one hold: the generation has no separate ones.
    expect(await fixture.gateway.calls(requestId, 1)).toHaveLength(1);
    const after = await fixture.settled();
    expect(before.balance - after.balance).toBe(call.cost?.amountNanos);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
    expect(after.held).toBe(0n);
    await openai.responses.delete(id);
    await expect(openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  });

  it("gets what the demo vendor makes", async () => {
    const openai = sdk();
    const { id } = await openai.responses.create({ model: "demo", input: "Hi", background: true });
    expect((await fixture.ended(id, openai)).output_text).toContain("You said: Hi");
  });

  it.each(["responses", "chat"] as const)("cancels what %s makes, for its input", async (model) => {
    const openai = sdk();
    const before = await fixture.settled();
    fixture.vendor[model].always(hang);
    const requestId = unique();
    const { id } = await openai.responses.create(
      { model, input: "Hi", background: true },
      { headers: { "x-request-id": requestId } },
    );
    const asked = await fixture.vendor[model].request(1);
    expect((await openai.responses.retrieve(id)).status).toBe("in_progress");
    expect(await openai.responses.cancel(id)).toMatchObject({
      id,
      status: "cancelled",
      output: [],
    });
    expect(await asked.left).toBe(true);
    expect(await openai.responses.cancel(id)).toMatchObject({ id, status: "cancelled" });
    expect(await openai.responses.retrieve(id)).toMatchObject({ id, status: "cancelled" });
    const after = await fixture.settled();
    const call = await fixture.gateway.call(requestId);
    expect(call).toMatchObject({
      path: "/v1/responses",
      ending: CallEnding.CANCELLED,
      usageSource: UsageSource.ESTIMATED,
      usage: { outputTokens: 0 },
    });
    expect(call.usage?.inputTokens).toBeGreaterThan(0);
    expect(before.balance - after.balance).toBe(call.cost?.amountNanos);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
  });
});

describe("a response in the background", () => {
  it("a background response is sent to its vendor as a streamed request that is not in the background", async () => {
    const body =
      '{ "background" : true, "temperature": 1.0, "model":"responses", "input":"Hi" ,"max_output_tokens":64}';
    const { id } = JSON.parse((await fixture.post(body)).body.toString()) as { id: string };
    await fixture.ended(id);
    expect(fixture.vendor.responses.last().body.toString()).toBe(
      '{ "background" : false, "temperature": 1.0, "model":"vendor-model", "input":"Hi" ,"max_output_tokens":64,"stream":true}',
    );
  });

  it("a response in the background is in progress while its vendor makes it, also in the middle of its words", async () => {
    const passed = Promise.withResolvers<void>();
    const sent = Promise.withResolvers<Buffer>();
    const made = strictResponses().answer;
    const held = heldBack(made, { part: 0.5, onSent: sent.resolve, until: passed.promise });
    fixture.vendor.responses.script(held);
    const asked = { model: "responses", input: "Hi", background: true } as const;
    const { id } = await fixture.openai.responses.create(asked);
    await sent.promise;
    expect(await fixture.openai.responses.retrieve(id)).toMatchObject({
      status: "in_progress",
      output: [],
    });
    passed.resolve();
    expect((await fixture.ended(id)).output_text).toBe(greeting);
  });

  it("that comes to its limit is incomplete, and charged", async () => {
    const before = await fixture.settled();
    for (const model of ["responses", "chat"]) {
      const asked = { model, input: "long", background: true, max_output_tokens: 16 } as const;
      const { id } = await fixture.openai.responses.create(asked);
      expect(await fixture.ended(id)).toMatchObject({
        status: "incomplete",
        incomplete_details: { reason: "max_output_tokens" },
      });
    }
    const after = await fixture.settled();
    expect(after.balance).toBeLessThan(before.balance);
  });

  it.each([
    ["responses", "status 500", "upstream_error"],
    ["responses", "error midstream", "upstream_error"],
    ["responses", "cut", "upstream_error"],
    ["chat", "status 500", "upstream_error"],
    ["chat", "error midstream", "upstream_error"],
    // As for a call: a response has no parameters of a task.
    ["chat", "status 400", "invalid_request"],
    ["responses", "status 400", "invalid_request"],
  ])(
    "a background response of %s that fails (%s) says why, and costs nothing (R-TSK-6)",
    async (model, input, code) => {
      const before = await fixture.settled();
      const requestId = unique();
      const { id } = await fixture.openai.responses.create(
        { model, input, background: true },
        { headers: { "x-request-id": requestId } },
      );
      expect(await fixture.ended(id)).toMatchObject({
        ...{ id, status: "failed", output: [], usage: null },
        error: { code, message: expect.stringMatching(/./) },
      });
      expect(await fixture.gateway.call(requestId)).toMatchObject({
        errorCode: code,
        cost: { amountNanos: 0n },
      });
      expect(await fixture.settled()).toEqual(before);
    },
  );

  it("a response in the background names in its record what its vendor's style could not carry, and to its client at once", async () => {
    const requestId = unique();
    const body = { model: "chat", input: "Hi", background: true, truncation: "auto" };
    const reply = await fixture.post(body, { "x-request-id": requestId });
    expect([reply.status, reply.headers["x-uas-dropped"]]).toEqual([200, "truncation"]);
    const { id } = JSON.parse(reply.body.toString()) as { id: string };
    await fixture.ended(id);
    expect(await fixture.gateway.call(requestId)).toMatchObject({ dropped: ["truncation"] });
  });

  it("a response in the background is one task, which its owner finds by the same id", async () => {
    const { id } = await fixture.openai.responses.create({
      ...{ model: "chat", input: "Hi", background: true },
    });
    await fixture.ended(id);
    const hex = id.replace("resp_", "");
    const taskId = hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
    const reply = await fetch(`${fixture.gateway.url}/api/ai/tasks/${taskId}`, {
      headers: { authorization: `Bearer ${fixture.customer.key}` },
    });
    expect(await reply.json()).toMatchObject({
      ...{ taskId, taskType: "TEXT", status: "completed", modelKey: "chat" },
      // Its text is in one place, where it can be deleted.
      resultContent: null,
    });
  });
});

describe("a conversation", () => {
  it.each(["responses", "chat"])(
    "a conversation goes on from a background response of %s, in both ways",
    async (model) => {
      const { openai } = fixture;
      const first = await openai.responses.create({ model, input: "One", background: true });
      await fixture.ended(first.id);
      const second = await openai.responses.create({
        ...{ model, input: "Two", previous_response_id: first.id, background: true },
      });
      expect(second.previous_response_id).toBe(first.id);
      const ended = await fixture.ended(second.id);
      expect(ended).toMatchObject({ status: "completed", previous_response_id: first.id });
      const third = await openai.responses.create({
        ...{ model, input: "Three", previous_response_id: second.id },
      });
      expect(third.output_text).toBe(greeting);
      if (model === "chat") {
        expect(fixture.vendor.chat.last().json?.messages).toHaveLength(5);
        return;
      }
      // Its vendor keeps it, under the id that it gave it.
      const sent = fixture.vendor.responses.last().json?.["previous_response_id"];
      expect(sent).toMatch(/^resp_/);
      expect(sent).not.toBe(second.id);
      // Its replies name it so: that goes on, too.
      expect(third.previous_response_id).toBe(sent);
      const asked = {
        model,
        input: "Four",
        previous_response_id: third.previous_response_id ?? "",
      };
      expect((await openai.responses.create(asked)).output_text).toBe(greeting);
      await openai.responses.delete(second.id);
      await expect(openai.responses.create(asked)).rejects.toMatchObject({ status: 400 });
    },
  );

  it("a conversation goes on at the one of a model's vendors that keeps it, whichever comes first", async () => {
    const { openai, vendor } = fixture;
    const first = await openai.responses.create({ model: "responses", input: "One" });
    const asked = { model: "both", input: "Two", previous_response_id: first.id } as const;
    const { id } = await openai.responses.create({ ...asked, background: true });
    expect(await fixture.ended(id)).toMatchObject({ status: "completed", output_text: greeting });
    expect(vendor.chat.requests).toHaveLength(0);
    expect(vendor.responses.last().json?.["previous_response_id"]).toBe(first.id);
  });

  it("a vendor that fails before its reply is followed by the model's next one", async () => {
    const { openai, vendor } = fixture;
    vendor.chat.always(failure(500));
    const asked = { model: "both", input: "Hi", background: true, stream: true } as const;
    const types: string[] = [];
    for await (const { type } of await openai.responses.create(asked)) types.push(type);
    expect(types.filter((type) => type === "response.in_progress")).toHaveLength(1);
    expect(types.at(-1)).toBe("response.completed");
    expect([vendor.chat.requests.length, vendor.responses.requests.length]).toEqual([1, 1]);
  });

  it("a conversation does not go on from one that is not complete", async () => {
    const { openai } = fixture;
    fixture.vendor.chat.always(hang);
    const asked = { model: "chat", input: "One", background: true } as const;
    const { id } = await openai.responses.create(asked);
    const next = { model: "chat", input: "Two", previous_response_id: id };
    for (const background of [false, true]) {
      await expect(openai.responses.create({ ...next, background })).rejects.toMatchObject({
        status: 400,
        param: "previous_response_id",
        message: expect.stringContaining("not complete"),
      });
    }
    await openai.responses.cancel(id);
  });
});
