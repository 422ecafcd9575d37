/** R-LIM-1 over HTTP, as the official SDKs see it. */
import Anthropic, { RateLimitError as AnthropicRateLimitError } from "@anthropic-ai/sdk";
import { RateLimitError } from "openai";
import { Pool } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { answer } from "../../support/upstream/behaviour.ts";
import { ask, expectFree, publicModel, useGateway } from "../harness.ts";

const fixture = useGateway();

async function limitedKey(rateLimits: { rpm?: number; tpm?: number; concurrency?: number }) {
  const { gateway } = fixture;
  const customer = await gateway.customer();
  const { secret } = await gateway.keys.createKey({ accountId: customer.accountId, rateLimits });
  return { customer, secret };
}

const styles = {
  "chat completions": (key: string) => fixture.openaiWith(key).chat.completions.create(ask),
  responses: (key: string) =>
    fixture.openaiWith(key).responses.create({ model: publicModel, input: "Hello" }),
  messages: (key: string) =>
    new Anthropic({ apiKey: key, baseURL: fixture.gateway.url, maxRetries: 0 }).messages.create({
      ...ask,
      max_tokens: 16,
    }),
};

it.each(Object.keys(styles) as (keyof typeof styles)[])(
  "%s: the SDK raises its RateLimitError, which says when to retry; nothing is held",
  async (style) => {
    const { customer, secret } = await limitedKey({ rpm: 1 });
    await styles[style](secret);
    const sent = fixture.upstream.requests.length;
    const told = await expectFree(fixture.gateway, customer, () =>
      styles[style](secret).then(
        () => expect.unreachable("the call was not refused"),
        (error: unknown) => error as RateLimitError,
      ),
    );
    expect(told).toBeInstanceOf(style === "messages" ? AnthropicRateLimitError : RateLimitError);
    expect(told.message).toContain("the API key may use 1 requests per minute");
    expect(told.headers?.get("x-ratelimit-limit-requests")).toBe("1");
    expect(told.headers?.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(told.headers?.get("anthropic-ratelimit-requests-remaining")).toBe("0");
    const seconds = Number(told.headers?.get("retry-after"));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(65);
    expect(told.headers?.get("x-ratelimit-reset-requests")).toBe(`${seconds}s`);
    expect(fixture.upstream.requests).toHaveLength(sent);
  },
);

it("a served call says what is left, and a limit that is removed binds no more", async () => {
  const { customer, secret } = await limitedKey({ rpm: 2, tpm: 1_000_000, concurrency: 1 });
  const chat = () => fixture.chat(ask, { authorization: `Bearer ${secret}` });
  const first = await chat();
  expect(first.status).toBe(200);
  expect(first.headers["x-ratelimit-remaining-requests"]).toBe("1");
  expect(Number(first.headers["x-ratelimit-remaining-tokens"])).toBeLessThan(1_000_000);
  expect(first.headers["anthropic-ratelimit-requests-limit"]).toBe("2");
  await expect.poll(async () => (await chat()).status, { interval: 5 }).toBe(200);
  expect((await chat()).status).toBe(429);
  const { keys } = await fixture.gateway.keys.listKeys({ accountId: customer.accountId });
  const key = keys.find(({ rateLimits }) => rateLimits !== undefined);
  await fixture.gateway.keys.updateKey({
    key: { keyId: key?.keyId ?? "" },
    updateMask: { paths: ["rate_limits"] },
  });
  await expect.poll(async () => (await chat()).status, { interval: 20 }).toBe(200);
  const free = await chat();
  expect(free.headers["x-ratelimit-limit-requests"]).toBeUndefined();
});

it("a call that held money because its limits were far, and is refused, gives the money back", async () => {
  const { customer, secret } = await limitedKey({ rpm: 10 });
  const chat = () => fixture.chat(ask, { authorization: `Bearer ${secret}` });
  expect((await chat()).status).toBe(200);
  const pool = new Pool({ connectionString: fixture.gateway.databaseUrl, max: 1 });
  onTestFinished(() => pool.end());
  const { keys } = await fixture.gateway.keys.listKeys({ accountId: customer.accountId });
  const subjects = keys.map(({ keyId }) => `k${keyId}`);
  // As if another process had served nine more.
  const used = "update limit_use set requests[1] = 10 where subject = any($1)";
  const sent = fixture.upstream.requests.length;
  await expectFree(fixture.gateway, customer, async () => {
    expect((await pool.query(used, [subjects])).rowCount).toBe(1);
    expect((await chat()).status).toBe(429);
  });
  expect(fixture.upstream.requests).toHaveLength(sent);
});

it("a call of an account that may wait gets its turn when another one ends, and nothing is held meanwhile", async () => {
  const { customer, secret } = await limitedKey({ concurrency: 1 });
  const { accountId } = customer;
  const limitWait = { seconds: 30n };
  const updated = await fixture.gateway.accounts.updateAccount({
    account: { accountId, limitWait },
    updateMask: { paths: ["limit_wait"] },
  });
  expect(updated.account?.limitWait).toMatchObject(limitWait);
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const isAnswered = Promise.withResolvers<void>();
  fixture.upstream.script(async (exchange) => {
    isAnswered.resolve();
    await gate;
    await answer({})(exchange);
  });
  const headers = { authorization: `Bearer ${secret}` };
  const first = fixture.chat(ask, headers);
  await isAnswered.promise;
  const held = async () => (await fixture.gateway.money(accountId)).held;
  const heldByOne = await held();
  const others = [fixture.chat(ask, headers), fixture.chat(ask, headers)];
  const leaver = new AbortController();
  const left = fetch(`${fixture.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify(ask),
    signal: leaver.signal,
  });
  const running = async () => {
    const metrics = await fetch(`${fixture.gateway.internalUrl}/metrics`);
    return /^uas_calls_running (\d+)$/m.exec(await metrics.text())?.[1];
  };
  await expect.poll(running).toBe("4");
  leaver.abort();
  await expect(left).rejects.toThrow();
  await expect.poll(running).toBe("3");
  expect(await held()).toBe(heldByOne);
  expect(fixture.upstream.requests).toHaveLength(1);
  open();
  for (const reply of await Promise.all([first, ...others])) expect(reply.status).toBe(200);
  expect(fixture.upstream.requests).toHaveLength(3);
});

it.each([31, -1])("a wait of %s seconds is refused", async (seconds) => {
  const limitWait = { seconds: BigInt(seconds) };
  const { accountId } = fixture.customer;
  const updated = fixture.gateway.accounts.updateAccount({
    account: { accountId, limitWait },
    updateMask: { paths: ["limit_wait"] },
  });
  await expect(updated).rejects.toThrow("limit_wait must be 0 to 30 seconds");
});

it("a request that alone exceeds the limit of tokens is refused with that reason", async () => {
  const { secret } = await limitedKey({ tpm: 10 });
  const reply = await fixture.chat(
    { ...ask, max_tokens: 50 },
    { authorization: `Bearer ${secret}` },
  );
  expect(reply.status).toBe(429);
  expect(reply.body.toString()).toContain("request fewer (max_tokens)");
});

it.each([{ rpm: 0 }, { tpm: -1 }, { concurrency: 0 }])(
  "limits of %j are refused",
  async (rateLimits) => {
    const { accountId } = fixture.customer;
    const created = fixture.gateway.keys.createKey({ accountId, rateLimits });
    await expect(created).rejects.toThrow("1");
  },
);
