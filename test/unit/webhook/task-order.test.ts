import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { AttemptOutcome } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { openWebhooks, type Webhooks } from "./harness.ts";
import { newId } from "../../../src/core/uuid.ts";

const [PENDING, SENDING, DELIVERED, FAILED, DROPPED] = [1, 2, 3, 4, 5];

let webhooks: Webhooks;

beforeAll(async () => void (webhooks = await openWebhooks()));
afterEach(async () => {
  await webhooks.stopAll();
  await webhooks.pool.query(
    "truncate webhook_event, webhook_delivery, webhook_attempt, webhook_endpoint",
  );
});
afterAll(() => webhooks.close());

describe("R-HOOK-3: the order of a task's events", () => {
  const url = "https://a.example/";

  it("the order of a task's events sends the newest progress only, then the end, and nothing after it", async () => {
    const fake = webhooks.fake();
    await webhooks.dispatch({ client: fake.client });
    const task = { url, taskId: newId(), accountId: newId() };
    const progress = (value: number) =>
      webhooks.enqueue({ ...task, status: "progress", progress: value });
    const first = await progress(10);
    const [sent] = await fake.came(1);
    const second = await progress(20);
    const third = await progress(30);
    expect(await progress(30), "the same again").toBeUndefined();
    expect(await progress(25), "less").toBeUndefined();
    expect((await webhooks.stored(second)).state).toBe(DROPPED);
    expect((await webhooks.stored(third)).state).toBe(PENDING);
    await webhooks.enqueue({
      ...task,
      status: "failed",
      error: "x",
      errorCode: "upstream_error",
    });
    expect((await webhooks.stored(third)).state).toBe(DROPPED);
    expect(await progress(40), "after the end").toBeUndefined();
    expect(await webhooks.enqueue(task), "a second end").toBeUndefined();
    expect((await webhooks.stored(first)).state).toBe(SENDING);
    // The end waits for what is under way, however that ends.
    sent?.answer(500);
    const [, last] = await fake.came(2);
    expect(last?.body).toMatchObject({ status: "failed", external_data: { sequence: 4 } });
    expect((await webhooks.stored(first)).state).toBe(FAILED);
    last?.answer(204);
  });

  it("the order of a task's events sends progress at most once a second, and does not postpone it forever", async () => {
    const fake = webhooks.fake(() => 204);
    const { ended, finished } = await webhooks.dispatch({ client: fake.client });
    const task = { url, taskId: newId(), accountId: newId() };
    await webhooks.enqueue({ ...task, status: "progress", progress: 1 });
    await ended(1);
    const dues: number[] = [];
    let last: string | undefined;
    for (const progress of [2, 3, 4]) {
      last = await webhooks.enqueue({ ...task, status: "progress", progress });
      dues.push((await webhooks.stored(last)).dueIn);
    }
    // Each newer one is due when the first would have been, a second after what was sent: not
    // later.
    for (const due of dues) expect(due).toBeLessThanOrEqual(1);
    await webhooks.age(last);
    // On a busy machine, one of the others may be sent before.
    for (let count = finished.length; ; count = finished.length) {
      if ((await webhooks.stored(last)).state === DELIVERED) break;
      await ended(count + 1);
    }
  });

  it("progress reaches a receiver a second after the end of the last one, however long that took", async () => {
    const fake = webhooks.fake();
    await webhooks.dispatch({ client: fake.client });
    const task = { url, taskId: newId(), accountId: newId(), status: "progress" } as const;
    const first = await webhooks.enqueue({ ...task, progress: 1 });
    const [sent] = await fake.came(1);
    // As if its connection had taken ten seconds.
    await webhooks.pool.query(
      "update webhook_delivery set claim_time = claim_time - interval '10 s' where id = $1",
      [first],
    );
    const second = await webhooks.enqueue({ ...task, progress: 2 });
    sent?.answer(204);
    await fake.came(2);
    const { rows } = await webhooks.pool.query(
      `select next.claim_time >= last.end_time + interval '1 s' as is_apart
        from webhook_delivery last, webhook_delivery next where last.id = $1 and next.id = $2`,
      [first, second],
    );
    expect(rows).toEqual([{ is_apart: true }]);
  });

  it("the order of a task's events has one under way also with three processes that compete, and each is sent once", async () => {
    const seen: string[] = [];
    const under = new Map<string, number>();
    let most = 0;
    const client = {
      send: async ({ body }: { body?: Uint8Array }) => {
        const payload = JSON.parse(Buffer.from(body ?? []).toString()) as {
          status: string;
          external_data: { task_id: string; event_id: string };
        };
        const lane = payload.external_data.task_id;
        under.set(lane, (under.get(lane) ?? 0) + 1);
        most = Math.max(most, under.get(lane) ?? 0);
        await new Promise((resolve) => setImmediate(resolve));
        under.set(lane, (under.get(lane) ?? 0) - 1);
        seen.push(`${lane} ${payload.status} ${payload.external_data.event_id}`);
        const times = {
          dnsMs: 0,
          connectMs: 0,
          tlsMs: 0,
          firstByteMs: 0,
          totalMs: 0,
          addressClass: "none" as const,
        };
        return { outcome: { status: 204, headers: {} }, times };
      },
    };
    const processes = [
      await webhooks.dispatch({ client }),
      await webhooks.dispatch({ client }),
      await webhooks.dispatch({ client }),
    ];
    const accountId = newId();
    const tasks = Array.from({ length: 40 }, () => newId());
    await Promise.all(
      tasks.map(async (taskId, index) => {
        const task = { url: `https://a${index % 3}.example/`, taskId, accountId };
        await webhooks.enqueue({ ...task, status: "progress", progress: 10 });
        await webhooks.enqueue({ ...task, status: "progress", progress: 20 });
        await webhooks.enqueue(task);
      }),
    );
    const completed = () => seen.filter((line) => line.includes(" completed "));
    while (completed().length < tasks.length)
      await Promise.race(processes.map(({ finished, ended }) => ended(finished.length + 1)));
    expect(most).toBe(1);
    expect(new Set(seen).size).toBe(seen.length);
    for (const taskId of tasks) {
      const own = seen.filter((line) => line.startsWith(taskId)).map((line) => line.split(" ")[1]);
      expect(own.at(-1)).toBe("completed");
      expect(own.filter((status) => status === "completed")).toHaveLength(1);
    }
  });
});

describe("R-HOOK-3: at least once", () => {
  const url = "https://a.example/";

  it("a delivery claimed by a dead process is sent by another: ends, not progress", async () => {
    const [end, progress] = [
      await webhooks.enqueue({ url }),
      await webhooks.enqueue({ url, status: "progress" }),
    ];
    // As a process leaves them that is killed after its claim.
    await webhooks.pool.query(
      `update webhook_delivery set state = 2, attempts = 1, series = 1, claim_time = now() - interval '20 s',
         lease_until = clock_timestamp() - interval '1 ms'`,
    );
    const { client } = webhooks.fake(() => 204);
    const { ended } = await webhooks.dispatch({ client });
    await ended(1);
    const { LOST, DELIVERED: ARRIVED } = AttemptOutcome;
    expect(await webhooks.stored(end)).toMatchObject({
      state: DELIVERED,
      attempts: 2,
      outcomes: [LOST, ARRIVED],
    });
    expect(await webhooks.stored(progress)).toMatchObject({
      state: FAILED,
      attempts: 1,
      outcomes: [LOST],
    });
  });

  it("a process that lost its lease records its attempt, and changes nothing else", async () => {
    const fake = webhooks.fake();
    const first = await webhooks.dispatch({ client: fake.client });
    const id = await webhooks.enqueue({ url });
    await fake.came(1);
    await webhooks.pool.query("update webhook_delivery set lease_until = now() - interval '1 s'");
    const second = await webhooks.dispatch({ client: fake.client });
    const [one, other] = await fake.came(2);
    one?.answer(500);
    await first.ended(1);
    expect(await webhooks.stored(id)).toMatchObject({
      state: SENDING,
      attempts: 2,
      outcomes: [AttemptOutcome.SERVER_ERROR],
    });
    other?.answer(204);
    await second.ended(1);
    expect(await webhooks.stored(id)).toMatchObject({ state: DELIVERED, attempts: 2 });
  });

  it("a stop waits for attempts under way and claims nothing more", async () => {
    const fake = webhooks.fake();
    const { dispatcher } = await webhooks.dispatch({ client: fake.client });
    const id = await webhooks.enqueue({ url });
    const [held] = await fake.came(1);
    const stopping = dispatcher.stop();
    const later = await webhooks.enqueue({ url });
    held?.answer(204);
    await stopping;
    expect((await webhooks.stored(id)).state).toBe(DELIVERED);
    expect((await webhooks.stored(later)).state).toBe(PENDING);
    expect(fake.held).toHaveLength(1);
  });

  it("a delivery that cannot be signed waits, and uses up no attempt", async () => {
    const accountId = newId();
    await webhooks.pool.query("insert into webhook_secret (account_id, sealed) values ($1, 'x')", [
      accountId,
    ]);
    const told: string[] = [];
    await webhooks.dispatch({
      client: webhooks.fake().client,
      warn: (message) => void told.push(message),
    });
    const id = await webhooks.enqueue({ url, accountId });
    for (;;) {
      const { state, dueIn, attempts } = await webhooks.stored(id);
      if (state !== PENDING || dueIn < 1) continue;
      expect({ attempts, told }).toEqual({
        attempts: 0,
        told: ["an account's webhook secret was sealed with another master key"],
      });
      break;
    }
  });
});
