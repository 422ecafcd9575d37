/** Requests that are repeated with the same `Idempotency-Key`. */
import OpenAI from "openai";
import { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { keptReplyBytesMax } from "../../../src/core/limits.ts";
import { answer, failure } from "../../support/upstream/behaviour.ts";
import type { Behaviour } from "../../support/upstream/exchange.ts";
import { heldBack } from "../../support/upstream/held-back.ts";
import { ask, errorOf, newRequestId, useGateway } from "../harness.ts";

const fixture = useGateway();

let pool: Pool;
beforeAll(() => {
  pool = new Pool({ connectionString: fixture.gateway.databaseUrl, max: 1 });
});
afterAll(() => pool?.end());

const newKey = (): string => `key-${newRequestId()}`;

/** A reply that is held back until it is opened. */
function held(whole: Behaviour = answer()): { behaviour: Behaviour; open: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { behaviour: heldBack(whole, { part: -1, until: promise }), open: resolve };
}

/** The amount that the account pays for this work, in nano-USD. */
async function spent(work: () => Promise<void>): Promise<bigint> {
  const balance = async (): Promise<bigint> => {
    const { held: open, balance: now } = await fixture.gateway.money(fixture.customer.accountId);
    return open === 0n ? now : -1n;
  };
  await expect.poll(balance).not.toBe(-1n);
  const before = await balance();
  await work();
  await expect.poll(balance).not.toBe(-1n);
  return before - (await balance());
}

const oneCall = 11n * 250n + 7n * 2_000n;

describe.each([
  ["/v1/chat/completions", { ...ask, stream: false }],
  ["/v1/chat/completions", { ...ask, stream: true }],
  ["/v1/messages", { ...ask, max_tokens: 100, stream: false }],
  ["/v1/messages", { ...ask, max_tokens: 100, stream: true }],
  ["/v1/responses", { model: ask.model, input: "Say hello.", stream: false }],
  ["/v1/responses", { model: ask.model, input: "Say hello.", stream: true }],
])("a repeated request to %s with %j", (path, body) => {
  it("gets the same reply and is charged once", async () => {
    const headers = { "idempotency-key": newKey() };
    const request = { headers, body: JSON.stringify(body) };
    const cost = await spent(async () => {
      const first = await fixture.send(path, request);
      const second = await fixture.send(path, request);
      expect([first.status, second.status]).toEqual([200, 200]);
      expect(second.body.toString()).toBe(first.body.toString());
      expect(first.headers["idempotent-replayed"]).toBeUndefined();
      expect(second.headers["idempotent-replayed"]).toBe("true");
    });
    expect(cost).toBe(oneCall);
    expect(fixture.upstream.requests).toHaveLength(1);
  });
});

it("an SDK that retries after a lost connection gets the reply that was completed meanwhile", async () => {
  const { behaviour, open } = held(answer({ text: ["Hello once"] }));
  fixture.upstream.script(behaviour);
  const requestId = newRequestId();
  let attempts = 0;
  const losing: typeof fetch = async (url, init) => {
    attempts++;
    if (attempts > 1) return fetch(url, init);
    const abort = new AbortController();
    const lost = fetch(url, { ...init, signal: abort.signal });
    await fixture.upstream.request(1);
    abort.abort();
    await expect(lost).rejects.toThrow("abort");
    open();
    await fixture.gateway.call(requestId);
    throw new TypeError("fetch failed");
  };
  const baseURL = `${fixture.gateway.url}/v1`;
  const sdk = new OpenAI({ apiKey: fixture.customer.key, baseURL, fetch: losing, maxRetries: 1 });
  const cost = await spent(async () => {
    const reply = await sdk.chat.completions.create(
      { ...ask },
      { headers: { "Idempotency-Key": newKey(), "x-request-id": requestId } },
    );
    expect(reply.choices[0]?.message.content).toBe("Hello once");
  });
  expect([attempts, fixture.upstream.requests.length]).toEqual([2, 1]);
  expect(cost).toBe(oneCall);
});

it("of 50 equal requests at once, one reaches the vendor and the others get a 409 with a time to retry", async () => {
  const { behaviour, open } = held();
  fixture.upstream.script(behaviour);
  const headers = { "idempotency-key": newKey() };
  const cost = await spent(async () => {
    const replies = Array.from({ length: 50 }, () => fixture.chat(ask, headers));
    const refused = replies.map((reply) =>
      reply.then((got) => (got.status === 409 ? got : Promise.reject(new Error("served")))),
    );
    const first = await Promise.any(refused);
    expect(errorOf(first)["code"]).toBe("idempotency_key_in_use");
    expect(first.headers["retry-after"]).toBe("2");
    await fixture.upstream.request(1);
    open();
    const statuses = (await Promise.all(replies)).map(({ status }) => status);
    expect(statuses.filter((status) => status !== 409 && status !== 200)).toEqual([]);
    expect((await fixture.chat(ask, headers)).status).toBe(200);
  });
  expect(cost).toBe(oneCall);
  expect(fixture.upstream.requests).toHaveLength(1);
});

it("a key with another body or path is refused, and nothing is charged", async () => {
  const headers = { "idempotency-key": newKey() };
  await fixture.chat(ask, headers);
  const cost = await spent(async () => {
    const other = await fixture.chat({ ...ask, temperature: 0 }, headers);
    expect([other.status, errorOf(other)["code"]]).toEqual([422, "idempotency_key_reused"]);
    const body = JSON.stringify({ ...ask, max_tokens: 1 });
    expect((await fixture.send("/v1/messages", { headers, body })).status).toBe(422);
  });
  expect(cost).toBe(0n);
  expect(fixture.upstream.requests).toHaveLength(1);
});

it("the same key of another account is another key", async () => {
  const headers = { "idempotency-key": newKey() };
  await fixture.chat(ask, headers);
  const other = await fixture.gateway.customer();
  const reply = await fixture.chat(ask, { ...headers, authorization: `Bearer ${other.key}` });
  expect([reply.status, reply.headers["idempotent-replayed"]]).toEqual([200, undefined]);
});

it("a call that failed free of charge gives its key back: the next request runs", async () => {
  const headers = { "idempotency-key": newKey() };
  fixture.upstream.script(failure(400), answer());
  expect((await fixture.chat(ask, headers)).status).toBe(400);
  const second = await fixture.chat({ ...ask, temperature: 0 }, headers);
  expect([second.status, second.headers["idempotent-replayed"]]).toEqual([200, undefined]);
});

it("a reply that is too long to be kept is charged once; its repetition is refused", async () => {
  const headers = { "idempotency-key": newKey() };
  fixture.upstream.script(answer({ text: ["a".repeat(keptReplyBytesMax)] }));
  expect((await fixture.chat(ask, headers)).status).toBe(200);
  const cost = await spent(async () => {
    const second = await fixture.chat(ask, headers);
    expect(second.status).toBe(422);
    expect(errorOf(second)["message"]).toContain("its reply is not kept; choose a new key");
  });
  expect(cost).toBe(0n);
});

it("a key is free again after a day", async () => {
  const headers = { "idempotency-key": newKey() };
  await fixture.chat(ask, headers);
  await pool.query(
    "update idempotent_call set expires_at = now() - interval '1 s' where key = $1",
    [headers["idempotency-key"]],
  );
  const second = await fixture.chat({ ...ask, temperature: 0 }, headers);
  expect([second.status, second.headers["idempotent-replayed"]]).toEqual([200, undefined]);
});

it("the kept reply is encrypted, and a request without a key leaves no row", async () => {
  await pool.query("delete from idempotent_call");
  fixture.upstream.script(answer({ text: ["plain canary"] }), answer({ text: ["plain canary"] }));
  await fixture.chat(ask);
  const rows = async () => (await pool.query("select sealed from idempotent_call")).rows;
  expect(await rows()).toEqual([]);
  await fixture.chat(ask, { "idempotency-key": newKey() });
  const [row] = (await rows()) as { sealed: Buffer }[];
  expect(row?.sealed.length).toBeGreaterThan(100);
  expect(row?.sealed.includes("canary")).toBe(false);
});

it("a key that no header can carry is a 400 that says what it may be", async () => {
  const reply = await fixture.chat(ask, { "idempotency-key": "a".repeat(256) });
  expect(reply.status).toBe(400);
  expect(errorOf(reply)["message"]).toContain("1 to 255 visible ASCII characters");
});
