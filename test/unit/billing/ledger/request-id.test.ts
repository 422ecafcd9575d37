/** R-ID-4: calls that are lost before their first result are found by their request IDs. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createBillingJobs } from "../../../../src/billing/jobs.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { callRow } from "../calls/call-row.ts";
import { type Billing, openBilling } from "../harness.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterEach(() => billing.expectClean());
afterAll(() => billing.close());

/** IDs that clients may choose, and that an array of texts could confuse. */
const odd = [
  "plain-id_1.2",
  "null",
  "NULL",
  '"',
  "\\",
  '{"a":1,"b":[2]}',
  "a,b",
  "'; drop table hold; --",
  "}{",
  '\\"\\\\',
  "x".repeat(256),
];

/** Expires all open holds, and sweeps them. */
async function lose(): Promise<number> {
  await billing.pool.query("update open_hold set expires_at = now() - interval '1 s'");
  return createBillingJobs({ pool: billing.pool }).recoverHolds();
}

async function requests(table: "call" | "hold", ids: readonly string[]) {
  const sql = `select id, request_id from ${table} where id = any($1)`;
  const { rows } = await billing.pool.query<{ id: string; request_id: string | null }>(sql, [ids]);
  const found = new Map(rows.map((row) => [row.id, row.request_id]));
  return ids.map((id) => found.get(id));
}

test("request ids of a batch are stored with their own holds, whatever characters they have", async () => {
  const accountId = await billing.account(1_000n);
  const known = odd.map((requestId) => ({ id: newId(), amountNanos: 1n, requestId }));
  const unknown = { id: newId(), amountNanos: 1n };
  const [first, ...rest] = known;
  const holds = [...(first ? [first] : []), unknown, ...rest];
  await billing.send({ accountId, holds });
  const ids = known.map(({ id }) => id);
  expect(await requests("hold", ids)).toEqual(odd);
  expect(await lose()).toBe(holds.length);
  expect(await requests("call", ids)).toEqual(odd);
  expect(await requests("call", [unknown.id])).toEqual([""]);
  expect(await billing.balance(accountId)).toEqual({ available: 1_000n, held: 0n });
});

test("request ids are also stored where a batch exceeds the balance and its holds are admitted one by one", async () => {
  const accountId = await billing.account(10n);
  const holds = ["first", "too-much", "last"].map((requestId, index) => ({
    id: newId(),
    amountNanos: index === 1 ? 100n : 5n,
    requestId,
  }));
  const { holds: verdicts } = await billing.send({ accountId, holds });
  expect(verdicts.map(({ admitted }) => admitted)).toEqual([true, false, true]);
  const ids = holds.map(({ id }) => id);
  expect(await requests("hold", ids)).toEqual(["first", undefined, "last"]);
  await lose();
  expect(await requests("call", ids)).toEqual(["first", undefined, "last"]);
});

test("a checkpoint's record takes precedence over the request id of its hold, and ended holds keep none", async () => {
  const accountId = await billing.account(10n);
  const [told, settled, late] = [newId(), newId(), newId()];
  const holds = [told, settled, late].map((id) => ({ id, amountNanos: 3n, requestId: "held" }));
  await billing.send({ accountId, holds });
  const record = callRow(told, accountId, { request_id: "told", held: "3" });
  await billing.send({
    accountId,
    extends: [{ id: told, amountNanos: 0n, checkpointNanos: 2n, record }],
    settles: [[settled, 1n, { request_id: "settled" }]],
  });
  expect(await lose()).toBe(2);
  expect(await requests("call", [told, settled, late])).toEqual(["told", "settled", "held"]);
  expect(await requests("hold", [told, settled, late])).toEqual([null, null, null]);
  // It lived after all: what it really was replaces what was made up for it.
  await billing.send({ accountId, settles: [[late, 2n, { request_id: "held", model: "known" }]] });
  const { rows } = await billing.pool.query("select model, cost from call where id = $1", [late]);
  expect(rows).toEqual([{ model: "known", cost: "2" }]);
});
