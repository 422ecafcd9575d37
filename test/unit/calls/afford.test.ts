/**
 * R-MON-3, R-KEY-4: of 1,000 calls at once on an account, or with a key, that can afford 10,
 * exactly 10 reach the vendor, however many gateways take them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { type Customer, type Gateway, publicModel, startGateway } from "../../support/gateway.ts";
import { send } from "../../support/raw-http.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";

const calls = 1_000;
const affordable = 10;
const nodes = 3;

/** Of what `answer()` reports: 11 tokens read, 7 made. */
const costNanos = 11n * 250n + 7n * 2_000n;

const body = JSON.stringify({
  model: publicModel,
  max_tokens: 7,
  messages: [{ role: "user", content: "Say hello." }],
});

const running: { upstream?: Upstream; database?: TestDatabase; gateways: Gateway[] } = {
  gateways: [],
};

beforeAll(async () => {
  const upstream = (running.upstream = await startUpstream());
  const database = (running.database = await createTestDatabase());
  // However long all the others take: a call whose vendor fails it gives its money back to the next
  // one.
  const timeouts = { connectMs: 120_000, firstByteMs: 120_000, idleMs: 120_000 };
  const vendors = { sim: { baseUrl: upstream.baseUrl, apiKey: upstream.secret, timeouts } };
  // The database outlives them all.
  const shared = { url: database.url, close: () => Promise.resolve() };
  const start = (): Promise<Gateway> => startGateway({ vendors, database: shared });
  running.gateways = await Promise.all(Array.from({ length: nodes }, start));
});

afterAll(async () => {
  await Promise.all(running.gateways.map((gateway) => gateway.close()));
  await running.database?.close();
  await running.upstream?.close();
});

function upstreamOf(): Upstream {
  if (running.upstream === undefined) throw new Error("not started");
  return running.upstream;
}

function first(): Gateway {
  const [gateway] = running.gateways;
  if (gateway === undefined) throw new Error("not started");
  return gateway;
}

function call(gateway: Gateway, { key }: Customer): ReturnType<typeof send> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  return send(`${gateway.url}/v1/chat/completions`, { headers, body });
}

/** Returns the hold of one call in nano-USD, equal for each. */
async function heldByOne(): Promise<bigint> {
  const rich = await first().customer();
  const gate = closedGate();
  const reply = call(first(), rich);
  await upstreamOf().request(1);
  const { held } = await first().money(rich.accountId);
  gate.open();
  expect((await reply).status).toBe(200);
  return held;
}

/** The vendor does not answer until it is opened. */
function closedGate(): { open: () => void } {
  const upstream = upstreamOf();
  upstream.clear();
  const { promise, resolve } = Promise.withResolvers<void>();
  upstream.always(async (exchange) => {
    await promise;
    await answer()(exchange);
  });
  return { open: resolve };
}

/** Returns the status of one call. A 503 from a busy database is retried. */
async function verdictOf(gateway: Gateway, customer: Customer): Promise<number> {
  for (;;) {
    const { status } = await call(gateway, customer);
    if (status !== 503) return status;
  }
}

interface Outcome {
  /** Number of calls by status. */
  readonly statuses: Readonly<Record<number, number>>;
  /**
   * Held amount when all other calls had been answered, or when one too many had reached the
   * vendor.
   */
  readonly heldNanos: bigint | undefined;
}

/** All at once; the vendor answers once all others have been refused. */
async function callAtOnce(gateways: readonly Gateway[], customer: Customer): Promise<Outcome> {
  const gate = closedGate();
  let heldNanos: bigint | undefined;
  const look = async (): Promise<void> => {
    heldNanos ??= (await first().money(customer.accountId)).held;
    gate.open();
  };
  // One call too many is already a failure, so it is not awaited.
  const tooMany = upstreamOf()
    .request(affordable + 1)
    .then(look);
  tooMany.catch(() => {});
  const statuses: Record<number, number> = {};
  let answered = 0;
  const replies = Array.from({ length: calls }, async (_, index) => {
    const status = await verdictOf(gateways[index % gateways.length] ?? first(), customer);
    statuses[status] = (statuses[status] ?? 0) + 1;
    // Calls answered before the vendor's first answer were refused.
    if (++answered === calls - affordable) await look();
  });
  await Promise.all(replies);
  return { statuses, heldNanos };
}

describe.each([
  ["an account", 1],
  ["an account", nodes],
  ["a key", nodes],
])("what %s can afford, on %i nodes", { timeout: 60_000 }, (payer, count) => {
  it("is admitted exactly, and charged once", async () => {
    const one = await heldByOne();
    const limitNanos = one * BigInt(affordable + 1) - 1n;
    const options =
      payer === "a key" ? { keyLimitNanos: limitNanos } : { balanceNanos: limitNanos };
    const customer = await first().customer(options);
    const before = await first().money(customer.accountId);
    const outcome = await callAtOnce(running.gateways.slice(0, count), customer);
    expect(outcome).toEqual({
      statuses: { 200: affordable, 402: calls - affordable },
      heldNanos: one * BigInt(affordable),
    });
    expect(upstreamOf().requests).toHaveLength(affordable);
    const balance = before.balance - costNanos * BigInt(affordable);
    await expect
      .poll(() => first().money(customer.accountId))
      .toEqual({ held: 0n, balance, available: balance });
  });
});
