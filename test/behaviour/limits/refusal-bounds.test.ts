/** A client that goes on after a refusal fills neither the database nor the log. */
import { Client } from "pg";
import { expect, it } from "vitest";
import { callMessage, type StoredCallRow } from "../../../src/billing/message.ts";
import { refusalRecordsMax } from "../../../src/core/limits.ts";
import { ask, useGateway } from "../harness.ts";

const fixture = useGateway();
const refusals = 5_000;
const workers = 16;

it("5,000 refused calls of a key are at most 12 rows and 12 lines, and every one is counted", async () => {
  const { gateway } = fixture;
  const { accountId, key } = await gateway.customer({ balanceNanos: 0n });
  const headers = { authorization: `Bearer ${key}` };
  let left = refusals;
  const loop = async (): Promise<void> => {
    while (left-- > 0) expect((await fixture.chat(ask, headers)).status).toBe(402);
  };
  await Promise.all(Array.from({ length: workers }, loop));
  const counted = await gateway.app.metrics.refusedCalls.get();
  expect(counted.values).toMatchObject([
    { labels: { reason: "insufficient_balance" }, value: refusals },
  ]);
  // The end of the minute, or of the process, writes the number of the others.
  await gateway.app.close();

  const records = (await rowsOf(accountId)).map(callMessage);
  expect(records.length).toBeLessThanOrEqual(12);
  const alone = records.filter(({ refusedCount }) => refusedCount === 0);
  expect(alone).toHaveLength(refusalRecordsMax);
  const shared = records.reduce((sum, { refusedCount }) => sum + refusedCount, 0);
  expect(alone.length + shared).toBe(refusals);
  expect(gateway.log.filter((line) => line.includes(accountId)).length).toBeLessThanOrEqual(12);
});

async function rowsOf(accountId: string): Promise<StoredCallRow[]> {
  const client = new Client({ connectionString: fixture.gateway.databaseUrl });
  await client.connect();
  try {
    const text = "select * from call where account_id = $1";
    return (await client.query<StoredCallRow>(text, [accountId])).rows;
  } finally {
    await client.end();
  }
}
