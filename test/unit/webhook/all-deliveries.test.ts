/** The deliveries of all accounts, as operators see them. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { ListDeliveriesRequest } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { DeliveryState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { operator } from "../../../src/core/caller.ts";
import { ErrorCode } from "../../../src/core/errors.ts";
import { openWebhooks, type Webhooks } from "./harness.ts";
import { accountId, as, codeOf, otherAccount, type WebhookClient } from "./rpc.ts";

const rows = 20_000;

/**
 * Deliveries to two receivers of two accounts by turns, one in two thousand failed, dropped or
 * waiting, the others delivered.
 */
const fill = `
  with endpoint as (
    insert into webhook_endpoint (id, account_id, origin)
      values (gen_random_uuid(), $1, 'https://a.example'), (gen_random_uuid(), $2, 'https://b.example')
      returning id, account_id),
  event as (
    insert into webhook_event (id, account_id, task_id, endpoint_id, sequence, kind, status, progress, callback_id, url, body)
      select ('01960000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, account_id, gen_random_uuid(),
          endpoint.id, 1, 2, 2, 100, 'callback-' || n, 'https://a.example/hook', ''
        from generate_series(0, $3::int - 1) n
        join endpoint on account_id = ($4::uuid[])[1 + n % 2]
      returning id, account_id, endpoint_id, task_id, substr(callback_id, 10)::int as n)
  insert into webhook_delivery (id, account_id, endpoint_id, task_id, kind, state)
    select id, account_id, endpoint_id, task_id, 2,
        case n % 2000 when 0 then 4 when 1 then 5 when 2 then 1 else 3 end from event`;

let webhooks: Webhooks;
let rpc: WebhookClient;

beforeAll(async () => {
  webhooks = await openWebhooks();
  rpc = as(webhooks, operator);
  const { pool } = webhooks;
  await pool.query(fill, [accountId, otherAccount, rows, [accountId, otherAccount]]);
  for (const table of ["webhook_event", "webhook_delivery", "webhook_endpoint"]) {
    await pool.query(`vacuum analyze ${table}`);
  }
});
afterAll(() => webhooks.close());

/** Every delivery that fits, page by page. */
async function all(filter: Partial<Pick<ListDeliveriesRequest, "state" | "taskId" | "origin">>) {
  const deliveries = [];
  let pageToken = "";
  do {
    const page = await rpc.listDeliveries({ pageSize: 4, ...filter, pageToken });
    deliveries.push(...page.deliveries);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return deliveries;
}

/**
 * Returns the number of rows of the table and entries of its indexes that any connection read so
 * far.
 */
async function readSoFar(): Promise<number> {
  await webhooks.pool.query("select pg_stat_force_next_flush()");
  const { rows: counted } = await webhooks.pool.query<{ count: string }>(
    `select (select sum(seq_tup_read) from pg_stat_user_tables where relname = 'webhook_delivery')
       + (select sum(idx_tup_read) from pg_stat_user_indexes where relname = 'webhook_delivery') as count`,
  );
  return Number(counted[0]?.count);
}

it("R-CON-1: deliveries in a rare state are found page by page", async () => {
  const before = await readSoFar();
  for (const state of [DeliveryState.FAILED, DeliveryState.DROPPED, DeliveryState.PENDING]) {
    const found = await all({ state });
    expect(found.map((each) => each.state)).toEqual(Array(10).fill(state));
    const ids = found.map(({ deliveryId }) => deliveryId);
    expect(ids).toEqual(ids.toSorted().toReversed());
  }
  expect((await readSoFar()) - before).toBeLessThan(1_000);
});

it("R-CON-1: deliveries are listed for all accounts, or for one account, task or receiver", async () => {
  const { deliveries } = await rpc.listDeliveries({ pageSize: 10 });
  expect(new Set(deliveries.map((each) => each.accountId))).toEqual(
    new Set([accountId, otherAccount]),
  );
  const one = await rpc.listDeliveries({ accountId, pageSize: 10 });
  expect(new Set(one.deliveries.map((each) => each.accountId))).toEqual(new Set([accountId]));
  const [first] = deliveries;
  expect(await all({ taskId: first?.taskId ?? "" })).toEqual([first]);
  const failed = { state: DeliveryState.FAILED };
  expect(await all({ ...failed, origin: "https://a.example" })).toHaveLength(10);
  expect(await all({ ...failed, origin: "https://b.example" })).toEqual([]);
  expect(await all({ origin: "https://never.example" })).toEqual([]);
});

it("R-AUTH-6: only operators list the deliveries of all accounts", async () => {
  for (const caller of [
    { kind: "session", accountId },
    { kind: "key", accountId, keyId: accountId, models: undefined },
    { kind: "anonymous" },
  ] as const) {
    expect(await codeOf(as(webhooks, caller).listDeliveries({}))).toBe(ErrorCode.NOT_FOUND);
  }
});
