/** R-MON-7: chaos notices holds of dead processes that stay open. */
import { hostname } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/core/uuid.ts";
import { type Billing, openBilling } from "../../unit/billing/harness.ts";
import { noFindings } from "./check.ts";
import { DeadHolds } from "./dead-holds.ts";

let billing: Billing;
beforeAll(async () => void (billing = await openBilling()));
afterAll(() => billing.close());

/** A process with an open hold. */
async function holder(pid: number): Promise<{ readonly accountId: string; readonly id: string }> {
  const [accountId, nodeId, id] = [await billing.account(100n), newId(), newId()];
  const name = `${hostname()}:${pid}`;
  await billing.pool.query("insert into node (id, name) values ($1, $2)", [nodeId, name]);
  await billing.send({ accountId, holds: [{ id, amountNanos: 10n }] }, nodeId);
  return { accountId, id };
}

const watch = (limitMs: number, isAlone = false): DeadHolds => {
  const ask = (text: string, values: readonly string[]) =>
    billing.pool.query<object>(text, [...values]);
  return new DeadHolds(ask, { limitMs, isAlone });
};

test("the open hold of a dead process counts as stuck once the limit has passed since the death", async () => {
  const { accountId, id } = await holder(1);
  const dead = watch(0);
  dead.add(1);
  const findings = noFindings();
  await dead.check(findings);
  expect(findings).toMatchObject({
    stuck: 1,
    details: [expect.stringContaining("process 1 died")],
  });
  await billing.send({ accountId, settles: [[id, 1n]] });
});

test("where no other process lives, the limit begins when the next one has started", async () => {
  const { accountId, id } = await holder(4);
  const dead = watch(0, true);
  dead.add(4);
  const findings = noFindings();
  const checked = dead.check(findings);
  // It has polled at least once.
  await billing.pool.query("select 1");
  expect(findings.stuck).toBe(0);
  dead.onStarted();
  await checked;
  expect(findings.stuck).toBe(1);
  await billing.send({ accountId, settles: [[id, 1n]] });
});

test("a dead process whose holds have ended counts as nothing, whatever holds others have", async () => {
  const gone = await holder(2);
  const other = await holder(3);
  const dead = watch(60_000);
  dead.add(2);
  await billing.send({ accountId: gone.accountId, settles: [[gone.id, 1n]] });
  const findings = noFindings();
  await dead.check(findings);
  expect(findings).toEqual(noFindings());
  await billing.send({ accountId: other.accountId, settles: [[other.id, 1n]] });
});
