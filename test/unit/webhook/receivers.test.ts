/** Handling of failing receivers, which delay no others. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { AttemptOutcome } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { endpointIdOf } from "../../../src/webhook/enqueue.ts";
import { openWebhooks, type Webhooks } from "./harness.ts";
import { newId } from "../../../src/core/uuid.ts";

const [PENDING, DELIVERED] = [1, 3];
const origin = "https://a.example";
const url = `${origin}/hook`;

let webhooks: Webhooks;
beforeAll(async () => void (webhooks = await openWebhooks()));
afterEach(async () => {
  await webhooks.stopAll();
  await webhooks.pool.query(
    "truncate webhook_event, webhook_delivery, webhook_attempt, webhook_endpoint",
  );
});
afterAll(() => webhooks.close());

interface EndpointFacts {
  readonly failures: number;
  readonly probes: number;
  /** Seconds until the next probe; null if the breaker is closed. */
  readonly openFor: number | null;
  readonly isDead: boolean;
}

async function endpoint(accountId: string): Promise<EndpointFacts | undefined> {
  const { rows } = await webhooks.pool.query<EndpointFacts>(
    `select failures, probes, extract(epoch from open_until - now())::float as "openFor",
       dead_time is not null as "isDead" from webhook_endpoint where id = $1`,
    [endpointIdOf(accountId, origin)],
  );
  return rows[0];
}

/** Lets the breaker's time pass. */
async function probeNow(accountId: string): Promise<void> {
  await webhooks.pool.query("update webhook_endpoint set open_until = now() where id = $1", [
    endpointIdOf(accountId, origin),
  ]);
}

/**
 * Lets three hours pass: all that is due, and all that a receiver has done, is so much further
 * back.
 */
async function passThreeHours(): Promise<void> {
  await webhooks.pool.query("update webhook_delivery set due = due - interval '3 h'");
  await webhooks.pool.query(
    `update webhook_endpoint set failing_since = failing_since - interval '3 h',
       open_until = open_until - interval '3 h', failure_time = failure_time - interval '3 h'`,
  );
}

/** Deliveries that a dispatcher may try now, or tries. */
async function dueNow(): Promise<readonly object[]> {
  const { rows } = await webhooks.pool.query<object>(
    `select d.state, d.attempts, d.due - now() as due, d.lease_until - now() as lease, e.open_until - now() as open
     from webhook_delivery d left join webhook_endpoint e on e.id = d.endpoint_id
     where d.state = 2 or (d.state = 1 and d.due <= now() and coalesce(e.open_until <= now(), true))`,
  );
  return rows;
}

describe("R-HOOK-4: the breaker of a receiver", () => {
  it("opens after five failures, keeps deliveries without using up attempts, and is closed by a probe", async () => {
    let status = 500;
    const { client } = webhooks.fake(() => status);
    const running = await webhooks.dispatch({ client });
    const accountId = newId();
    for (let failures = 1; failures <= 5; failures++) {
      await webhooks.enqueue({ url, accountId });
      await running.ended(failures);
    }
    expect(await endpoint(accountId)).toMatchObject({ failures: 5, probes: 0, isDead: false });
    const waiting = await webhooks.enqueue({ url, accountId });
    // Another receiver's delivery is sent first: the waiting one had its turn.
    await webhooks.enqueue({ url: "https://b.example/", accountId });
    await running.ended(6);
    expect(await webhooks.stored(waiting)).toMatchObject({ state: PENDING, attempts: 0 });
    expect((await endpoint(accountId))?.openFor).toBeGreaterThan(20);
    // The first probe fails: only one delivery was tried, and the pause doubles.
    await probeNow(accountId);
    await running.ended(7);
    expect(await endpoint(accountId)).toMatchObject({ failures: 6, probes: 1 });
    expect((await endpoint(accountId))?.openFor).toBeGreaterThan(50);
    status = 204;
    await probeNow(accountId);
    await webhooks.pool.query("update webhook_delivery set due = now() where state = 1");
    // Six of this receiver, and the other's.
    await running.ended(14);
    expect(await endpoint(accountId)).toEqual({
      failures: 0,
      probes: 0,
      openFor: null,
      isDead: false,
    });
    expect(await webhooks.stored(waiting)).toMatchObject({ state: DELIVERED });
  });

  it("the breaker of a receiver is probed by one process with one delivery, however many are pending", async () => {
    const accountId = newId();
    const ids = [];
    for (let index = 0; index < 5; index++) ids.push(await webhooks.enqueue({ url, accountId }));
    await webhooks.pool.query(
      `insert into webhook_endpoint (id, account_id, origin, failures, failing_since, open_until)
       values ($1, $2, $3, 5, now(), now())`,
      [endpointIdOf(accountId, origin), accountId, origin],
    );
    const fake = webhooks.fake();
    const processes = [
      await webhooks.dispatch({ client: fake.client }),
      await webhooks.dispatch({ client: fake.client }),
      await webhooks.dispatch({ client: fake.client }),
    ];
    const [probe] = await fake.came(1);
    // Each looks once more, at least.
    await Promise.all(
      processes.map(async (_process, index) =>
        webhooks.enqueue({ url: `https://c${index}.example/` }),
      ),
    );
    const others = (await fake.came(4)).slice(1);
    expect(others.every((held) => !held.url.startsWith(origin))).toBe(true);
    for (const held of others) held.answer(204);
    probe?.answer("timeout");
    await Promise.race(processes.map(async ({ finished, ended }) => ended(finished.length + 1)));
    expect(fake.held).toHaveLength(4);
  });

  it("parks deliveries after 120 hours of failure, and sends them all when the receiver is enabled", async () => {
    const told: string[] = [];
    const { client } = webhooks.fake(() => 500);
    const running = await webhooks.dispatch({
      client,
      onAttempt: ({ isDead }) => void told.push(String(isDead)),
    });
    const accountId = newId();
    const id = await webhooks.enqueue({ url, accountId });
    await running.ended(1);
    await webhooks.pool.query(
      "update webhook_endpoint set failing_since = now() - interval '121 h'",
    );
    await webhooks.age(id);
    await running.ended(2);
    expect(await endpoint(accountId)).toMatchObject({ isDead: true });
    expect(told).toEqual(["false", "true"]);
    // Dead: not even probes, whatever comes.
    const later = await webhooks.enqueue({ url, accountId });
    await webhooks.age(id);
    await probeNow(accountId);
    await webhooks.enqueue({ url: "https://b.example/", accountId });
    await running.ended(3);
    expect(await webhooks.stored(later)).toMatchObject({ state: PENDING, attempts: 0 });
  });

  it("a receiver that was unreachable for 60 hours gets every event of that time, each once", async () => {
    const accountId = newId();
    let isAway = true;
    const arrived: string[] = [];
    const { client } = webhooks.fake((target) => {
      if (!isAway) arrived.push(target);
      return isAway ? 503 : 204;
    });
    await webhooks.dispatch({ client });
    const urls = Array.from({ length: 20 }, (_, index) => `${origin}/${3 * index}`);
    const ids: string[] = [];
    for (const target of urls) {
      ids.push((await webhooks.enqueue({ url: target, accountId })) ?? "");
      await passThreeHours();
      await expect.poll(dueNow).toEqual([]);
    }
    for (const id of ids) expect(await webhooks.stored(id)).toMatchObject({ state: PENDING });
    isAway = false;
    // The longest pause between two attempts is 16 hours, and up to a fifth more.
    for (let hours = 21; hours > 0; hours -= 3) {
      await passThreeHours();
      await expect.poll(dueNow).toEqual([]);
    }
    expect(arrived.toSorted()).toEqual(urls.toSorted());
    for (const id of ids) expect(await webhooks.stored(id)).toMatchObject({ state: DELIVERED });
  });

  it("R-HOOK-6: the breaker of a receiver lets urgent deliveries through to a dead receiver, and success revives it", async () => {
    const accountId = newId();
    const [first, second] = [
      await webhooks.enqueue({ url, accountId }),
      await webhooks.enqueue({ url, accountId }),
    ];
    await webhooks.pool.query(
      `insert into webhook_endpoint (id, account_id, origin, failures, failing_since, open_until, dead_time)
       values ($1, $2, $3, 99, now(), now() + interval '1 h', now())`,
      [endpointIdOf(accountId, origin), accountId, origin],
    );
    await webhooks.pool.query("update webhook_delivery set is_urgent = true where id = $1", [
      second,
    ]);
    const { client } = webhooks.fake(() => 204);
    const running = await webhooks.dispatch({ client });
    await running.ended(2);
    expect(await webhooks.stored(second)).toMatchObject({ state: DELIVERED });
    expect(await webhooks.stored(first)).toMatchObject({ state: DELIVERED });
    expect(await endpoint(accountId)).toMatchObject({ failures: 0, isDead: false });
  });

  it("a 410 of one address does not count against its receiver", async () => {
    const { client } = webhooks.fake(() => 410);
    const running = await webhooks.dispatch({ client });
    const accountId = newId();
    for (let ended = 1; ended <= 6; ended++) {
      const id = await webhooks.enqueue({ url: `${origin}/${ended}`, accountId });
      await running.ended(ended);
      expect((await webhooks.stored(id)).outcomes).toEqual([AttemptOutcome.GONE]);
    }
    expect(await endpoint(accountId)).toBeUndefined();
  });
});

describe("R-HOOK-4: receivers that hang delay no others", () => {
  it("60 receivers that never answer delay no others: with 100 slots every other receiver gets all of its events", async () => {
    const hungOf = (index: number): string => `https://hung${index}.example/`;
    const healthyOf = (index: number): string => `https://healthy${index}.example/`;
    const fake = webhooks.fake((target) => (target.startsWith("https://hung") ? undefined : 204));
    const accountOf = Array.from({ length: 10 }, () => newId());
    // The hung ones first, with several events each, so that all of them precede all others.
    for (let round = 0; round < 3; round++) {
      await Promise.all(
        Array.from({ length: 60 }, (_, index) =>
          webhooks.enqueue({ url: hungOf(index), accountId: accountOf[index % 10] ?? "" }),
        ),
      );
    }
    const running = await webhooks.dispatch({ client: fake.client, slots: { node: 100 } });
    await fake.came(60);
    await Promise.all(
      Array.from({ length: 200 }, (_, index) =>
        webhooks.enqueue({ url: healthyOf(index % 50), accountId: accountOf[index % 10] ?? "" }),
      ),
    );
    const finished = await running.ended(200);
    expect(finished.filter(({ origin: of }) => of.startsWith("https://healthy"))).toHaveLength(200);
    // None of the hung ones has been answered, and none has more than one under way.
    expect(fake.held).toHaveLength(60);
  });
});
