/**
 * Compaction: one item takes the place of a conversation, by the vendor or by a summary of the
 * model.
 */
import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { answer } from "../../../support/upstream/behaviour.ts";
import { send } from "../../../support/raw-http.ts";
import { modelOf, useStyleGateway, vendorStyles } from "../../../support/style-gateway.ts";
import { expectFree, newRequestId, openaiOf } from "../../harness.ts";

const fixture = useStyleGateway();

type Items = OpenAI.Responses.ResponseInput;

const conversation: Items = [
  { role: "user", content: "The password is Bern." },
  { role: "assistant", content: "Noted." },
  { type: "function_call", call_id: "call_1", name: "look", arguments: '{"at":"x"}' },
  { type: "function_call_output", call_id: "call_1", output: "nothing there" },
];

const look: OpenAI.Responses.FunctionTool = {
  type: "function",
  name: "look",
  parameters: { type: "object", properties: { at: { type: "string" } } },
  strict: false,
};

const trigger = { type: "compaction_trigger" as const };
const greeting = "Hello there, Grüße 🌍!";
const translated = vendorStyles.filter((style) => style !== "responses");

async function start() {
  const customer = await fixture.gateway.customer();
  return { customer, openai: openaiOf(fixture.gateway, customer.key) };
}

describe.each(vendorStyles)("a model whose vendor speaks %s", (style) => {
  const model = modelOf(style);

  it("replies to a compaction_trigger with one compaction item, complete and streamed", async () => {
    const { openai } = await start();
    const input = [...conversation, trigger];
    const whole = await openai.responses.create({ model, input, tools: [look], store: false });
    expect(whole).toMatchObject({ status: "completed", output: [{ type: "compaction" }] });
    const stream = await openai.responses.create({ model, input, tools: [look], stream: true });
    const done: OpenAI.Responses.ResponseOutputItem[] = [];
    let last: OpenAI.Responses.ResponseStreamEvent | undefined;
    for await (const event of stream) {
      if (event.type === "response.output_item.done") done.push(event.item);
      last = event;
    }
    expect(done).toMatchObject([{ type: "compaction", encrypted_content: expect.any(String) }]);
    expect(last).toMatchObject({ type: "response.completed", response: { output: done } });
  });

  it("continues from the item, and is charged for both calls", async () => {
    const { customer, openai } = await start();
    const { output } = await openai.responses.create({ model, input: [...conversation, trigger] });
    const [item] = output as unknown as Items;
    const before = await fixture.gateway.money(customer.accountId);
    const next = await openai.responses.create({
      model,
      input: [item!, { role: "user", content: "Which password?" }],
    });
    expect(next.output_text).toBe(greeting);
    await expect
      .poll(async () => (await fixture.gateway.money(customer.accountId)).balance)
      .toBeLessThan(before.balance);
  });

  it("compacts by POST /v1/responses/compact: the user's messages, and one item", async () => {
    const { customer, openai } = await start();
    const id = newRequestId();
    const compacted = await openai.responses.compact(
      { model, input: conversation, instructions: "Be brief." },
      { headers: { "x-request-id": id } },
    );
    expect(compacted).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: "response.compaction",
      created_at: expect.any(Number),
      output: [
        { type: "message", role: "user", id: expect.stringMatching(/^msg_/), status: "completed" },
        { type: "compaction", id: expect.stringMatching(/^cmp_/) },
      ],
      usage: { input_tokens: expect.any(Number), output_tokens: expect.any(Number) },
    });
    const call = await fixture.gateway.call(id);
    expect(call.cost?.amountNanos).toBeGreaterThan(0n);
    expect(call.usage?.outputTokens).toBe(compacted.usage.output_tokens);
    expect((await fixture.gateway.money(customer.accountId)).held).toBe(0n);
  });
});

describe.each(translated)("a model whose vendor speaks %s and cannot compact", (style) => {
  const model = modelOf(style);

  it("receives a request for a summary without tools, and gets it with the next request", async () => {
    const { openai } = await start();
    const { output } = await openai.responses.create({
      model,
      input: [...conversation, trigger],
      tools: [look],
      tool_choice: "required",
    });
    expect(fixture.upstream(style).last().body.toString()).toContain("Summarise the conversation");
    await openai.responses.create({ model, input: [...(output as Items), ...question] });
    const sent = fixture.upstream(style).last().body.toString();
    expect(sent).toContain(greeting);
    expect(sent).not.toContain("The password is Bern.");
  });

  it("carries the summary of another vendor", async () => {
    const { openai } = await start();
    const { output } = await openai.responses.create({ model, input: [...conversation, trigger] });
    const other = modelOf("responses");
    const next = await openai.responses.create({
      model: other,
      input: [...(output as Items), ...question],
    });
    expect(next.output_text).toBe(greeting);
    expect(fixture.upstream("responses").last().body.toString()).toContain(greeting);
    const compacted = await openai.responses.compact({ model: other, input: output as Items });
    expect(compacted.output.at(-1)).toMatchObject({ type: "compaction" });
  });

  it("continues a compacted response by its id without what was compacted", async () => {
    const { openai } = await start();
    const first = await openai.responses.create({ model, input: [...conversation, trigger] });
    await openai.responses.create({ model, input: question, previous_response_id: first.id });
    const sent = fixture.upstream(style).last().body.toString();
    expect(sent).toContain(greeting);
    expect(sent).not.toContain("The password is Bern.");
    expect(sent).not.toContain("Summarise the conversation");
  });
});

const question: Items = [{ role: "user", content: "Which password?" }];

describe("a compaction", () => {
  it("a compaction without a summary fails, complete and streamed, and costs nothing", async () => {
    const { customer, openai } = await start();
    const input = [...conversation, trigger];
    const request = { model: modelOf("chat"), input };
    await expectFree(fixture.gateway, customer, async () => {
      fixture.upstream("chat").always(answer({ text: [" ", "\n"] }));
      await expect(openai.responses.create(request)).rejects.toMatchObject({ status: 502 });
    });
    fixture.upstream("chat").always(answer({ text: [" ", "\n"] }));
    const stream = await openai.responses.create({ ...request, stream: true });
    const events: string[] = [];
    const read = async () => {
      for await (const event of stream) events.push(event.type);
    };
    await expect(read()).rejects.toThrow("no summary");
    expect(events).not.toContain("response.completed");
  });

  it.each([
    [{ input: [trigger] }, "input"],
    [{ input: [trigger, ...conversation] }, "input[0]"],
    [
      { input: [{ type: "compaction", encrypted_content: "uas1.broken" }] },
      "input[0].encrypted_content",
    ],
    [{ input: [{ type: "compaction", encrypted_content: "gAAA" }, ...question] }, "input"],
  ])("a compaction of %j is a 400 that names %s", async (body, param) => {
    const { openai } = await start();
    const request = {
      model: modelOf("messages"),
      ...body,
    } as OpenAI.Responses.ResponseCreateParamsNonStreaming;
    await expect(openai.responses.create(request)).rejects.toMatchObject({ status: 400, param });
  });

  it.each(["stream", "background"])(
    "a compaction by its endpoint is a 400 with %s",
    async (name) => {
      const { customer } = await start();
      const reply = await expectFree(fixture.gateway, customer, () =>
        send(`${fixture.gateway.url}/v1/responses/compact`, {
          headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
          body: JSON.stringify({ model: modelOf("chat"), input: conversation, [name]: true }),
        }),
      );
      expect(reply.status).toBe(400);
      expect(JSON.parse(reply.body.toString())).toMatchObject({ error: { param: name } });
    },
  );
});
