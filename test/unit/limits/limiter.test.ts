/** R-LIM-1: limits are exact over all processes, whatever the interleaving. */
import * as fc from "fast-check";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { newId } from "../../../src/core/uuid.ts";
import {
  Limiter,
  type LimitSubject,
  type LimitRefusal,
  type Ticket,
} from "../../../src/limits/limiter.ts";
import { createTestDatabase } from "../../support/database.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 2 });
});
afterAll(async () => {
  await pool.end();
  await database.close();
});

/** A process that lives. */
async function process() {
  const nodeId = newId();
  await pool.query("insert into node (id, name) values ($1, 'test')", [nodeId]);
  const own = new Pool({ connectionString: database.url, max: 1 });
  const limiter = new Limiter({ pool: own, nodeId });
  const asked = vi.spyOn(own, "query");
  onTestFinished(async () => {
    await limiter.stop();
    await own.end();
  });
  return { nodeId, limiter, asked: () => asked.mock.calls.length };
}

function subject(limits: Partial<LimitSubject["limits"]>, name = `k${newId()}`): LimitSubject {
  return {
    name,
    kind: "key",
    limits: { rpm: undefined, tpm: undefined, concurrency: undefined, ...limits },
  };
}

function isTicket(verdict: Ticket | LimitRefusal): verdict is Ticket {
  return verdict.isAdmitted;
}

it("of 1,022 requests over three processes, a limit of 100 per minute admits exactly 100", async () => {
  const limited = subject({ rpm: 100 });
  const processes = await Promise.all([process(), process(), process()]);
  const verdicts = await Promise.all(
    Array.from({ length: 1_022 }, async (_, index) =>
      processes[index % 3]?.limiter.admit({ subjects: [limited], tokens: 1 }),
    ),
  );
  expect(verdicts.filter((verdict) => verdict?.isAdmitted)).toHaveLength(100);
  const refusal = verdicts.find((verdict) => verdict?.isAdmitted === false);
  expect(refusal).toMatchObject({ reason: "requests", subject: limited });
  const { retryMs } = refusal as LimitRefusal;
  expect(retryMs).toBeGreaterThan(55_000);
  expect(retryMs).toBeLessThanOrEqual(60_000);
});

it("a minute later there is room again, by the database's clock", async () => {
  const limited = subject({ rpm: 2 });
  const [{ limiter }, other] = [await process(), await process()];
  const admit = (each: Limiter) => each.admit({ subjects: [limited], tokens: 0 });
  await Promise.all([admit(limiter), admit(limiter)]);
  expect((await admit(other.limiter)).isAdmitted).toBe(false);
  await pool.query("update limit_use set slice = slice - 10 where subject = $1", [limited.name]);
  expect((await admit((await process()).limiter)).isAdmitted).toBe(false);
  // Two slices may have begun meanwhile.
  await pool.query("update limit_use set slice = slice - 3 where subject = $1", [limited.name]);
  expect((await admit((await process()).limiter)).isAdmitted).toBe(true);
});

it("a database clock that is set back by a day refuses what has been used for a minute, not for a day", async () => {
  const limited = subject({ rpm: 2 });
  const admit = async () => (await process()).limiter.admit({ subjects: [limited], tokens: 0 });
  await admit();
  await admit();
  const ahead = "update limit_use set slice = slice + 17280 where subject = $1";
  await pool.query(ahead, [limited.name]);
  const { isAdmitted, retryMs } = (await admit()) as LimitRefusal;
  expect(isAdmitted).toBe(false);
  expect(retryMs).toBeLessThanOrEqual(60_000);
  await pool.query("update limit_use set slice = slice - 13 where subject = $1", [limited.name]);
  expect((await admit()).isAdmitted).toBe(true);
});

it("tokens are reserved at most and returned when the call ends: the limit is used to the last one", async () => {
  const limited = subject({ tpm: 1_000 });
  const [{ limiter }, other] = [await process(), await process()];
  const first = await limiter.admit({ subjects: [limited], tokens: 900 });
  expect(await other.limiter.admit({ subjects: [limited], tokens: 101 })).toMatchObject({
    reason: "tokens",
    used: { tokens: 900 },
  });
  if (isTicket(first)) limiter.end(first, 40);
  const admit = async (tokens: number) =>
    (await limiter.admit({ subjects: [limited], tokens })).isAdmitted;
  expect(await admit(961)).toBe(false);
  expect(await admit(960)).toBe(true);
  expect(await admit(1)).toBe(false);
});

it("calls at once are limited over processes, and those of a dead process do not count", async () => {
  const limited = subject({ concurrency: 3 });
  const [a, b] = [await process(), await process()];
  const admit = ({ limiter }: typeof a) => limiter.admit({ subjects: [limited], tokens: 0 });
  const [first, second] = [await admit(a), await admit(a)];
  expect((await admit(b)).isAdmitted).toBe(true);
  expect(await admit(b)).toMatchObject({ reason: "concurrency" });
  if (isTicket(first)) a.limiter.end(first, 0);
  await expect.poll(async () => (await admit(b)).isAdmitted, { interval: 5 }).toBe(true);
  expect((await admit(a)).isAdmitted).toBe(false);
  await pool.query("update node set ended = now() where id = $1", [b.nodeId]);
  expect([await admit(a), await admit(a)].map(({ isAdmitted }) => isAdmitted)).toEqual([
    true,
    true,
  ]);
  expect((await admit(a)).isAdmitted).toBe(false);
  expect(second.isAdmitted).toBe(true);
});

it("a request that one limit refuses counts for none, and the one with the least left is reported", async () => {
  const account = subject({ rpm: 3 }, `a${newId()}`);
  const [a, b] = [subject({ rpm: 1 }), subject({ rpm: 5 })];
  const { limiter } = await process();
  const admit = (key: LimitSubject) => limiter.admit({ subjects: [key, account], tokens: 0 });
  expect((await admit(a)).isAdmitted).toBe(true);
  expect(await admit(a)).toMatchObject({ subject: { name: a.name } });
  expect([await admit(b), await admit(b)].every(isTicket)).toBe(true);
  expect(await admit(b)).toMatchObject({ subject: { name: account.name } });
});

it("limits are far while less than half of each was used lately, and never after a refusal", async () => {
  const limited = subject({ rpm: 5, tpm: 1_000, concurrency: 3 });
  const { limiter } = await process();
  const request = (tokens: number) => ({ subjects: [limited], tokens });
  expect(limiter.isFar(request(0))).toBe(false);
  const first = await limiter.admit(request(100));
  expect(limiter.isFar(request(399))).toBe(true);
  expect(limiter.isFar(request(400))).toBe(false);
  await limiter.admit(request(100));
  expect(limiter.isFar(request(0))).toBe(false);
  if (isTicket(first)) limiter.end(first, 0);
  expect(limiter.isFar(request(0))).toBe(true);
  expect((await limiter.admit(request(1_001))).isAdmitted).toBe(false);
  expect(limiter.isFar(request(0))).toBe(false);
});

it("a process that stops reports to the others which calls have ended", async () => {
  const limited = subject({ tpm: 100, concurrency: 1 });
  const [{ limiter }, other] = [await process(), await process()];
  const first = await limiter.admit({ subjects: [limited], tokens: 100 });
  if (isTicket(first)) limiter.end(first, 0);
  await limiter.stop();
  expect(await other.limiter.admit({ subjects: [limited], tokens: 100 })).toMatchObject({
    isAdmitted: true,
  });
});

it("a limit that was changed counts from the next request on", async () => {
  const limited = subject({ rpm: 2 });
  const { limiter } = await process();
  const admit = (each: LimitSubject) => limiter.admit({ subjects: [each], tokens: 0 });
  expect([await admit(limited), await admit(limited)].every(isTicket)).toBe(true);
  expect((await admit(limited)).isAdmitted).toBe(false);
  const raised = { ...limited, limits: { ...limited.limits, rpm: 3 } };
  expect((await admit(raised)).isAdmitted).toBe(true);
  expect(await admit(raised)).toMatchObject({ reason: "requests" });
});

it("requests that come at once share a statement, and a request beyond a used-up limit needs none", async () => {
  const limited = subject({ rpm: 20 });
  const { limiter, asked } = await process();
  const admit = () => limiter.admit({ subjects: [limited], tokens: 0 });
  await Promise.all(Array.from({ length: 21 }, admit));
  expect(asked()).toBe(1);
  expect((await admit()).isAdmitted).toBe(false);
  expect(asked()).toBe(1);
});

it("without the database a limit refuses, and never admits", async () => {
  const away = new Pool({ host: "127.0.0.1", port: 1, connectionTimeoutMillis: 500 });
  onTestFinished(() => away.end());
  const limiter = new Limiter({ pool: away, nodeId: newId() });
  const admitted = limiter.admit({ subjects: [subject({ rpm: 1_000 })], tokens: 0 });
  await expect(admitted).rejects.toMatchObject({ status: 503 });
});

it("never more is admitted than allowed, whatever comes, ends and dies in whatever order", async () => {
  const step = fc.record({
    process: fc.nat(1),
    key: fc.nat(1),
    tokens: fc.nat(60),
    used: fc.nat(60),
    end: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const limits = { rpm: 15, tpm: 200, concurrency: 6 };
      const account = subject(limits, `a${newId()}`);
      const keys = [subject({ rpm: 10, concurrency: 4 }), subject({ tpm: 120 })];
      const processes = [await process(), await process()];
      const open: { readonly ticket: Ticket; readonly by: number }[] = [];
      let [requests, tokens] = [0, 0];
      for (let from = 0; from < steps.length; from += 4) {
        const part = steps.slice(from, from + 4);
        const verdicts = await Promise.all(
          part.map(async ({ process: by, key, tokens: asked }) =>
            processes[by]?.limiter.admit({
              subjects: [keys[key] ?? account, account],
              tokens: asked,
            }),
          ),
        );
        verdicts.forEach((verdict, index) => {
          if (verdict === undefined || !isTicket(verdict)) return;
          requests += 1;
          tokens += verdict.tokens;
          open.push({ ticket: verdict, by: part[index]?.process ?? 0 });
        });
        expect(requests).toBeLessThanOrEqual(limits.rpm);
        expect(tokens).toBeLessThanOrEqual(limits.tpm);
        expect(open.length).toBeLessThanOrEqual(limits.concurrency);
        const last = part.at(-1);
        const ended = last?.end === true ? open.shift() : undefined;
        if (last === undefined || ended === undefined) continue;
        const used = Math.min(last.used, ended.ticket.tokens);
        tokens -= ended.ticket.tokens - used;
        processes[ended.by]?.limiter.end(ended.ticket, used);
      }
    }),
    { numRuns: 30 },
  );
});
