/**
 * `background: true` with `stream: true`: read as it is made, left, and gone on with from any
 * event.
 */
import type OpenAI from "openai";
import type { ResponseStreamEvent } from "openai/resources/responses/responses";
import { describe, expect, it } from "vitest";
import { send } from "../../../support/raw-http.ts";
import { hang } from "../../../support/upstream/behaviour.ts";
import { heldBack } from "../../../support/upstream/held-back.ts";
import { strictResponses } from "../../../support/upstream/responses-strict.ts";
import { openaiV6, unique, useBackground } from "./harness.ts";

const fixture = useBackground();

const greeting = "Hello there, Grüße 🌍!";
const sdks: ReadonlyArray<readonly [string, () => OpenAI]> = [
  ["7", () => fixture.openai],
  ["6", () => openaiV6(fixture)],
];

async function all(events: AsyncIterable<ResponseStreamEvent>): Promise<ResponseStreamEvent[]> {
  const seen: ResponseStreamEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

function numbers(events: readonly ResponseStreamEvent[]): number[] {
  return events.map(({ sequence_number: number }) => number);
}

function said(events: readonly ResponseStreamEvent[]): string {
  return events
    .flatMap((event) => (event.type === "response.output_text.delta" ? [event.delta] : []))
    .join("");
}

function idIn([first]: readonly ResponseStreamEvent[]): string {
  return first?.type === "response.created" ? first.response.id : "";
}

describe.each(sdks)("the official SDK %s", (_version, sdk) => {
  it.each(["responses", "chat", "demo"])("reads all that %s makes, in order", async (model) => {
    const openai = sdk();
    const asked = { model, input: "Hi", background: true, stream: true } as const;
    const events = await all(await openai.responses.create(asked));
    expect(numbers(events)).toEqual(events.map((_, at) => at));
    const types = events.map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual([
      "response.created",
      "response.queued",
      "response.in_progress",
    ]);
    expect(types.filter((type) => /created|queued|in_progress$/.test(type))).toHaveLength(3);
    const id = idIn(events);
    const kept = await openai.responses.retrieve(id);
    const last = events.at(-1);
    expect(last).toMatchObject({ type: "response.completed", response: { id, background: true } });
    expect(said(events)).toBe(kept.output_text);
    if (model !== "demo") expect(kept.output_text).toBe(greeting);
    for (const after of [0, 2, events.length - 2]) {
      const rest = await all(
        await openai.responses.retrieve(id, { stream: true, starting_after: after }),
      );
      expect(rest).toEqual(events.slice(after + 1));
    }
    expect(await all(await openai.responses.retrieve(id, { stream: true }))).toEqual(events);
  });

  it("its helper takes the stream for a response", async () => {
    const asked = { model: "chat", input: "Hi", background: true } as const;
    const made = await sdk().responses.stream(asked).finalResponse();
    expect(made).toMatchObject({ status: "completed", output_text: greeting, background: true });
  });
});

it("a stream shows the reply while it is generated; disconnecting changes nothing, and it continues from any event", async () => {
  const { openai } = fixture;
  const passed = Promise.withResolvers<void>();
  const made = strictResponses().answer;
  fixture.vendor.responses.script(heldBack(made, { part: 0.5, until: passed.promise }));
  const requestId = unique();
  const first = await openai.responses.create(
    { model: "responses", input: "Hi", background: true, stream: true },
    { headers: { "x-request-id": requestId } },
  );
  const seen: ResponseStreamEvent[] = [];
  for await (const event of first) {
    seen.push(event);
    // Here the vendor has said half of it, and says no more: the client leaves.
    if (event.type === "response.output_text.delta") break;
  }
  const id = idIn(seen);
  expect((await openai.responses.retrieve(id)).status).toBe("in_progress");
  const after = seen.length - 1;
  const second = await openai.responses.retrieve(id, { stream: true, starting_after: after });
  passed.resolve();
  const rest = await all(second);
  expect(numbers(rest)[0]).toBe(after + 1);
  expect(said([...seen, ...rest])).toBe(greeting);
  expect(rest.at(-1)).toMatchObject({ type: "response.completed" });
  expect(await fixture.gateway.call(requestId)).toMatchObject({ stream: true, status: 200 });
});

it.each([
  ["cancelled", "cancelled", null],
  ["failed", "failed", { code: "upstream_error" }],
])("a response that is %s ends its stream with that status", async (_, status, error) => {
  const { openai } = fixture;
  const before = await fixture.settled();
  const held = Promise.withResolvers<void>();
  const made = strictResponses().answer;
  const isCancelled = status === "cancelled";
  if (isCancelled)
    fixture.vendor.responses.script(heldBack(made, { part: 0.5, until: held.promise }));
  const input = isCancelled ? "Hi" : "error midstream";
  const asked = { model: "responses", input, background: true, stream: true } as const;
  const events: ResponseStreamEvent[] = [];
  for await (const event of await openai.responses.create(asked)) {
    events.push(event);
    const isDelta = event.type === "response.output_text.delta";
    if (isDelta && isCancelled) await openai.responses.cancel(idIn(events));
  }
  held.resolve();
  expect(numbers(events)).toEqual(events.map((__, at) => at));
  expect(said(events)).not.toBe("");
  expect(events.at(-1)).toMatchObject({
    type: "response.failed",
    response: { id: idIn(events), status, ...(error && { error }) },
  });
  const { balance } = await fixture.settled();
  // R-MON-11: the vendor has read the input, whichever side cancels.
  if (isCancelled) expect(balance).toBeLessThan(before.balance);
  else expect(balance).toBe(before.balance);
});

it("the same Idempotency-Key reads the same stream again", async () => {
  const headers = { "idempotency-key": unique() };
  const body = { model: "chat", input: "Hi", background: true, stream: true };
  const first = await fixture.post(body, headers);
  const again = await fixture.post(body, headers);
  expect(first.headers).toMatchObject({ "content-type": "text/event-stream; charset=utf-8" });
  expect(again.headers["idempotent-replayed"]).toBe("true");
  expect(again.body.toString()).toBe(first.body.toString());
  expect(fixture.vendor.chat.requests).toHaveLength(1);
});

describe("a response that cannot be read as a stream is refused with the reason", () => {
  const get = (path: string) =>
    send(`${fixture.gateway.url}/v1/responses/${path}`, {
      method: "GET",
      headers: { authorization: `Bearer ${fixture.customer.key}` },
    });
  const param = (reply: Awaited<ReturnType<typeof get>>) =>
    (JSON.parse(reply.body.toString()) as { error: { param: string } }).error.param;

  it("a response that was waited for, and one that was not to be streamed", async () => {
    const { openai } = fixture;
    const whole = await openai.responses.create({ model: "chat", input: "Hi" });
    const polled = await openai.responses.create({ model: "chat", input: "Hi", background: true });
    await fixture.ended(polled.id);
    for (const id of [whole.id, polled.id]) {
      const reply = await get(`${id}?stream=true`);
      expect([reply.status, param(reply)]).toEqual([400, "stream"]);
      expect((await get(`${id}?stream=false`)).status).toBe(200);
    }
  });

  it.each([
    ["?stream=1", 400, "stream"],
    ["?stream=true&starting_after=-1", 400, "starting_after"],
    ["?stream=true&starting_after=x", 400, "starting_after"],
    ["?stream=true", 404, "response_id"],
  ])(
    "a response that cannot be read as a stream is answered with the reason: resp_none%s",
    async (query, status, name) => {
      const reply = await get(`resp_none${query}`);
      expect([reply.status, param(reply)]).toEqual([status, name]);
    },
  );

  it("a response of another account cannot be read as a stream", async () => {
    fixture.vendor.chat.always(hang);
    const asked = { model: "chat", input: "Hi", background: true, stream: true } as const;
    const events: ResponseStreamEvent[] = [];
    for await (const event of await fixture.openai.responses.create(asked)) {
      events.push(event);
      break;
    }
    const id = idIn(events);
    const other = fixture.openaiWith(await fixture.gateway.customer());
    await expect(other.responses.retrieve(id, { stream: true })).rejects.toMatchObject({
      status: 404,
    });
    await fixture.openai.responses.cancel(id);
  });
});
