/** Calls are found by their request id, also those that the index of request ids leaves out. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readCalls } from "../../../../src/billing/calls/read.ts";
import { addRequestId, parseFilter } from "../../../../src/billing/calls/filter.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { Where } from "../../../../src/db/where.ts";
import { type Billing, openBilling } from "../harness.ts";

let billing: Billing;
const accountId = newId();
const other = newId();

beforeAll(async () => {
  billing = await openBilling();
  // Many calls of a long time, so that the plans are those of a large log.
  await billing.pool.query(
    `insert into call (id, account_id, request_id, key_id, model, vendor, path, stream, status, error_code, ending,
        usage_source, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost,
        held, price_version, start_time, duration_ms, first_byte_ms, upstream_request_id, dropped)
      select id, account_id, case n % 3 when 0 then 'client-' || n else left(id::text, 11) || substr(uuidv4, 12) end,
        '', 'm', 'v', '/', false, 200, '', 1, 1, 1, 0, 0, 1, 0, 0, 0, '', now(), 1, 1, '', ''
      from (select n, gen_random_uuid()::text as uuidv4, case n % 2 when 0 then $1::uuid else $2::uuid end as account_id,
          (lpad(to_hex((extract(epoch from now()) * 1000)::bigint + n * 40), 12, '0')
            || '7000800000' || lpad(to_hex(n), 10, '0'))::uuid as id
        from generate_series(1, 20000) n) s`,
    [accountId, other],
  );
  await billing.pool.query("analyze call");
});
afterAll(() => billing.close());

/**
 * A request id of the account that the given condition selects, with the ids of all calls that have
 * it.
 */
async function some(condition: string) {
  const { rows } = await billing.pool.query<{ request_id: string; id: string }>(
    `select request_id, id from call where account_id = $1 and ${condition} order by id limit 1 offset 500`,
    [accountId],
  );
  const [row] = rows;
  if (row === undefined) throw new Error("no such call");
  return row;
}

const find = async (requestId: string, of: string | undefined = accountId) => {
  const query = { ...parseFilter(of, undefined), requestId };
  const { calls } = await readCalls(billing.pool, query, { after: undefined, limit: 50 });
  return calls.map(({ id }) => id);
};

async function planOf(requestId: string): Promise<string> {
  const where = new Where().and("account_id = ?", accountId);
  addRequestId(where, requestId);
  const { rows } = await billing.pool.query<{ "QUERY PLAN": string }>(
    `explain select * from call where ${where.text} order by id desc limit 51`,
    where.values,
  );
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

describe("a call is found by its request id", () => {
  it.each([
    ["of the client", "request_id like 'client-%'"],
    ["that the gateway made", "request_id not like 'client-%'"],
  ])("%s", async (_name, condition) => {
    const { request_id: requestId, id } = await some(condition);
    expect(await find(requestId)).toEqual([id]);
    expect(await find(requestId, undefined)).toEqual([id]);
    expect(await find(requestId, other)).toEqual([]);
    const plan = await planOf(requestId);
    expect(plan).toContain("_request_id_account_id_id_idx");
    // Months without calls are read as they are.
    expect(plan).not.toMatch(/Seq Scan on .*cost=0\.00\.\.(?!0\.00 )/);
  });

  it("that is used again, by a call of another time, newest first", async () => {
    const { request_id: requestId, id } = await some("request_id not like 'client-%'");
    const again = newId();
    await billing.pool.query(
      `insert into call select (jsonb_populate_record(c, jsonb_build_object('id', $1::uuid))).* from call c where id = $2`,
      [again, id],
    );
    expect(await find(requestId)).toEqual([id, again].toSorted().toReversed());
  });

  it("that only begins like the id of its call, and no other text that begins so", async () => {
    const { id } = await some("request_id like 'client-%'");
    const requestId = `${id.slice(0, 11)}zz of a client`;
    await billing.pool.query("update call set request_id = $1 where id = $2", [requestId, id]);
    expect(await find(requestId)).toEqual([id]);
    expect(await find(`${id.slice(0, 11)}zz`)).toEqual([]);
    expect(await find(id.slice(0, 11))).toEqual([]);
    expect(await find(id.slice(0, 5))).toEqual([]);
  });
});
