import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newId } from "../../../src/core/uuid.ts";
import { DatabaseClock } from "../../../src/task/database-clock.ts";
import { createTaskJobs } from "../../../src/task/jobs.ts";
import type { Submitted } from "../../../src/provider/task.ts";
import { recoverLost } from "../../../src/webhook/delivery-store.ts";
import { openTasks, type Tasks } from "./worker-harness.ts";
import { model, one, vendor } from "./worker-setup.ts";

let tasks: Tasks;
beforeEach(async () => void (tasks = await openTasks()));
afterEach(async () => {
  vi.useRealTimers();
  await tasks.stopAll();
  await tasks.close();
});

const dayMs = 24 * 60 * 60 * 1_000;

/** The answer of a vendor that makes all of a task at once. */
const done = { files: [{ bytes: Buffer.from("picture"), contentType: "image/png" }] };

/** A task whose times are so many seconds from now. */
interface Times {
  readonly state: string;
  readonly begun: number;
  readonly next: number;
  readonly deadline: number;
  readonly lease?: number;
}

async function insert({ state, begun, next, deadline, lease }: Times): Promise<string> {
  const id = newId();
  await tasks.pool.query(
    `insert into task (id, account_id, key_id, model, type, params, fingerprint, request_id, hold, price_version,
        discount_bp, state, create_time, start_time, next_time, deadline, lease_until)
      values ($1, $1, $1, 'm', 2, '{}', '', 'r', 0, 'v', 0, $2, now() + $3 * interval '1 s',
        case when $2 <> 'queued' then now() + $3 * interval '1 s' end, now() + $4 * interval '1 s',
        now() + $5 * interval '1 s', now() + $6 * interval '1 s')`,
    [id, state, begun, next, deadline, lease ?? null],
  );
  return id;
}

/** The times of a task, in whole minutes from now; null: it has no lease. */
async function minutes(id: string): Promise<Record<string, number | null>> {
  const { rows } = await tasks.pool.query<Record<string, number | null>>(
    `select round(extract(epoch from next_time - now()) / 60)::int as next,
        round(extract(epoch from deadline - now()) / 60)::int as deadline,
        round(extract(epoch from lease_until - now()) / 60)::int as lease
      from task where id = $1`,
    [id],
  );
  return rows[0] ?? {};
}

/** Sets the database's clock back by a day: what was written before has times of tomorrow. */
const setBack = () => tasks.pool.query("update clock_mark set time = now() + interval '1 day'");

const daySeconds = dayMs / 1_000;

test("a database clock that is set back by a day delays no task, and takes none from a process that lives", async () => {
  const jobs = createTaskJobs({ pool: tasks.pool });
  expect(await jobs.followClock()).toBe(0);
  const before = { begun: daySeconds - 600, deadline: daySeconds + 1_200 };
  const queued = await insert({ ...before, state: "queued", next: daySeconds });
  const polled = await insert({ ...before, state: "running", next: daySeconds + 300 });
  const lost = { ...before, state: "submitting", next: daySeconds + 25, lease: daySeconds + 25 };
  const dead = await insert(lost);
  const after = { begun: -60, state: "running", next: 20, deadline: 1_800, lease: 20 };
  const alive = await insert(after);
  await setBack();
  expect(await jobs.followClock()).toBeGreaterThan(dayMs - 60_000);
  expect(await minutes(queued)).toEqual({ next: 0, deadline: 20, lease: null });
  expect(await minutes(polled)).toEqual({ next: 5, deadline: 20, lease: null });
  expect(await minutes(dead)).toEqual({ next: 0, deadline: 20, lease: 0 });
  expect(await minutes(alive)).toEqual({ next: 0, deadline: 30, lease: 0 });
  expect(await jobs.followClock()).toBe(0);
});

test("a database clock that is set back by a day delays no webhook and no alert", async () => {
  const { pool } = tasks;
  const jobs = createTaskJobs({ pool });
  await jobs.followClock();
  const [waiting, sending] = [newId(), newId()];
  const delivery = `insert into webhook_delivery (id, account_id, endpoint_id, task_id, kind, state, due, lease_until)
    values ($1, $1, $1, $1, 2, $2, now() + interval '1 day', now() + $3::interval)`;
  await pool.query(delivery, [waiting, 1, null]);
  await pool.query(delivery, [sending, 2, "1 day"]);
  await pool.query(
    `insert into webhook_endpoint (id, account_id, origin, failures, failing_since, open_until)
      values ($1, $1, 'https://a.example', 9, now() + interval '1 day', now() + interval '1 day')`,
    [newId()],
  );
  await pool.query(
    `insert into alert (id, account_id, kind, facts, email_to, email_due)
      values ($1, $1, 1, '{}', '{a@a.example}', now() + interval '1 day')`,
    [newId()],
  );
  await setBack();
  await jobs.followClock();
  const { rows } = await pool.query<{ is_soon: boolean }>(
    `select bool_and(time < now() + interval '1 min') as is_soon from (
      select due as time from webhook_delivery where state = 1
      union all select lease_until from webhook_delivery where state = 2
      union all select open_until from webhook_endpoint
      union all select failing_since from webhook_endpoint
      union all select email_due from alert) times`,
  );
  expect(rows).toEqual([{ is_soon: true }]);
});

/** Sets the database's clock forward by a day: what was written before has times of yesterday. */
const setForward = () => tasks.pool.query("update clock_mark set time = now() - interval '1 day'");

test("a database clock that is set forward by a day ends no task, and takes none from a process that lives", async () => {
  const jobs = createTaskJobs({ pool: tasks.pool });
  await jobs.followClock();
  const before = { begun: -daySeconds - 600, deadline: 1_200 - daySeconds };
  const queued = await insert({ ...before, state: "queued", next: -daySeconds });
  const polled = await insert({ ...before, state: "running", next: 300 - daySeconds });
  const held = { state: "submitting", next: 20 - daySeconds, lease: 20 - daySeconds };
  const alive = await insert({ ...before, ...held });
  const long = { state: "submitting", next: 600 - daySeconds, lease: 600 - daySeconds };
  const waited = await insert({ ...before, ...long });
  const lost = { state: "submitting", next: -daySeconds - 60, lease: -daySeconds - 60 };
  const dead = await insert({ ...before, ...lost });
  const after = { begun: 0, state: "running", next: 20, deadline: 1_800, lease: 20 };
  const young = await insert(after);
  await setForward();
  expect(await jobs.followClock()).toBeGreaterThan(dayMs - 60_000);
  expect(await minutes(queued)).toMatchObject({ deadline: 20, lease: null });
  expect(await minutes(polled)).toMatchObject({ deadline: 20, lease: null });
  expect(await minutes(alive)).toEqual({ next: 0, deadline: 20, lease: 0 });
  expect(await minutes(waited)).toEqual({ next: 10, deadline: 20, lease: 10 });
  expect(await minutes(young)).toEqual({ next: 0, deadline: 30, lease: 0 });
  const { rows } = await tasks.pool.query(
    `select lease_until > now() as is_held from task where id = any($1) order by id`,
    [[alive, waited, dead]],
  );
  expect(rows.map(({ is_held: isHeld }) => isHeld as boolean)).toEqual([true, true, false]);
  expect(await jobs.followClock()).toBe(0);
});

test("one process follows a step of the database's clock, and a new process takes no downtime for one", async () => {
  const [first, second] = [createTaskJobs(tasks), createTaskJobs(tasks)];
  await first.followClock();
  await second.followClock();
  await setForward();
  expect(await createTaskJobs(tasks).followClock()).toBe(0);
  await setForward();
  expect(await first.followClock()).toBeGreaterThan(0);
  expect(await second.followClock()).toBe(0);
});

test("a database clock that is set forward by a day frees no webhook that is being sent", async () => {
  const jobs = createTaskJobs(tasks);
  await jobs.followClock();
  const id = newId();
  await tasks.pool.query(
    `insert into webhook_delivery (id, account_id, endpoint_id, task_id, kind, state, due, claim_time, lease_until)
      values ($1, $1, $1, $1, 2, 2, now(), now() - interval '1 day', now() - interval '1 day' + interval '10 s')`,
    [id],
  );
  await setForward();
  expect(await recoverLost(tasks.pool)).toEqual([]);
  await jobs.followClock();
  expect(await recoverLost(tasks.pool)).toEqual([]);
  const sql = "select state, lease_until > now() as is_held from webhook_delivery";
  expect((await tasks.pool.query(sql)).rows).toEqual([{ state: 2, is_held: true }]);
});

test("R-TSK-7: a task whose vendor answers after the database's clock was set forward by a day is completed", async () => {
  const { pool } = tasks;
  const clock = new DatabaseClock({ pool });
  await clock.follow();
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<Submitted>();
  const v = vendor({
    submit() {
      asked.resolve();
      return answered.promise;
    },
  });
  const accountId = await tasks.account();
  const id = await tasks.submit({ accountId });
  tasks.work({ ...one({ v }), clock });
  await asked.promise;
  // One statement, as a step of the clock is one moment.
  await pool.query(
    `with stepped as (update clock_mark set time = time - interval '1 day')
      update task set lease_until = lease_until - interval '1 day', next_time = next_time - interval '1 day',
        start_time = start_time - interval '1 day', attempt_time = attempt_time - interval '1 day',
        deadline = deadline - interval '1 day' where id = $1`,
    [id],
  );
  // Another process looks for work, and finds it. Its vendor answers at once: the first process does not know it.
  const other = vendor({ submit: () => Promise.resolve({ done }) });
  tasks.work({
    vendors: new Map([
      ["v", v],
      ["other", other],
    ]),
    models: new Map([["n", model("n", ["other"])]]),
    clock,
  });
  await tasks.ended([await tasks.submit({ accountId, model: "n" })]);
  expect(await tasks.row(id)).toMatchObject({ state: "submitting", attempt_token: v.asked[0] });
  answered.resolve({ vendorTaskId: "v-1" });
  expect(await tasks.ended([id])).toMatchObject([{ state: "completed", cost: "100" }]);
  expect(v.asked).toHaveLength(1);
});

/** Sets the clock of this process off by so many days. The database's stays right. */
const setNodeClock = (days: number) =>
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + days * dayMs });

test.each([400, -400])(
  "a process whose clock is off by %i days completes, charges and records tasks by the database's clock",
  async (days) => {
    setNodeClock(days);
    const accountId = await tasks.account(1_000n);
    const ids = [await tasks.submit({ accountId }), await tasks.submit({ accountId })];
    const v = vendor({ submit: () => Promise.resolve({ done }) });
    tasks.work(one({ v }));
    const ended = await tasks.ended(ids);
    expect(ended).toMatchObject(ids.map(() => ({ state: "completed", cost: "100" })));
    const { rows } = await tasks.pool.query<{ id: string; duration_ms: number }>(
      "select id, duration_ms from call order by id",
    );
    const lasted = ended.map(({ id, create_time: from, finish_time: to }) => ({
      id,
      duration_ms: Number(to) - Number(from),
    }));
    expect(rows).toEqual(lasted);
    await tasks.expectClean();
  },
);
