/**
 * Call records as columns: reading returns the written records, for any common parts of a batch.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { CallRow } from "../../../../src/billing/calls/call-row.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { callRow } from "./call-row.ts";
import { type Billing, openBilling } from "../harness.ts";

let billing: Billing;

beforeAll(async () => {
  billing = await openBilling();
});

afterAll(() => billing.close());

/**
 * Holds for each record and settles them in one batch; null for a settlement without a record.
 * Returns what is stored.
 */
async function store(records: readonly (Partial<CallRow> | null)[]) {
  const accountId = await billing.account(1_000_000n);
  const calls = records.map((rest) => ({ id: newId(), rest }));
  const holds = calls.map(({ id }) => ({ id, amountNanos: 100n }));
  await billing.send({ accountId, holds });
  const rows = calls.map(({ id, rest }, place) => {
    const cost = BigInt(place);
    const told = callRow(id, accountId, { held: "100", ...rest, cost: cost.toString() });
    return { id, costNanos: cost, record: rest === null ? undefined : told };
  });
  await billing.apply({
    accountId,
    settles: rows.map(({ id, costNanos, record }) => ({
      id,
      costNanos,
      ...(record && { record }),
    })),
  });
  const { rows: stored } = await billing.pool.query<Record<string, unknown>>(
    "select to_jsonb(c) - 'start_time' || jsonb_build_object('start_time', to_char(start_time at time zone 'UTC', " +
      `'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'cost', cost::text, 'held', held::text, 'vendor_cost', vendor_cost::text)` +
      " as call from call c where account_id = $1 order by id",
    [accountId],
  );
  const told = rows.flatMap(({ record }) => (record === undefined ? [] : [record]));
  return {
    stored: stored.map(({ call }) => call),
    told: told.map((row) => ({
      attempts: null,
      vendor_cost: null,
      units: null,
      ...row,
    })),
  };
}

test("records that differ in every column are read back as written", async () => {
  const odd: Partial<CallRow> = {
    request_id: 'a "quoted" \\ {id}, NULL',
    key_id: newId(),
    model: "ünïcode, {model}",
    vendor: "other",
    path: "/v1/messages",
    stream: true,
    status: 502,
    error_code: "upstream_error",
    ending: 4,
    usage_source: 2,
    input_tokens: 2_147_483_647,
    cached_input_tokens: 1,
    cache_write_tokens: 2,
    output_tokens: 3,
    reasoning_tokens: 4,
    held: "9007199254740993",
    price_version: "0123456789abcdef",
    start_time: "2026-11-22T09:08:07.006Z",
    duration_ms: 5,
    first_byte_ms: 6,
    upstream_request_id: "",
    dropped: "top_k,logit_bias",
    discount_bp: 1_234,
    charged: false,
    images: 7,
    second_micros: 8,
    vendor_cost: "9",
    attempts: [{ vendor: "a", error_code: "timeout", duration_ms: 10 }],
    units: { "tools.web_search": 1 },
  };
  const { stored, told } = await store([{}, odd, { dropped: null, charged: null }, {}]);
  expect(stored).toEqual(told);
  await billing.expectClean();
});

test("records of more kinds than are compared are read back as written", async () => {
  const kinds = Array.from({ length: 40 }, (_, place) => ({ model: `model-${place % 20}` }));
  const { stored, told } = await store(kinds);
  expect(stored).toEqual(told);
});

test("settlements without a record do not change the records beside them", async () => {
  const { stored, told } = await store([null, { input_tokens: 3 }, null, { model: "other" }, null]);
  expect(stored).toHaveLength(2);
  expect(stored).toEqual(told);
  await billing.expectClean(["I16"]);
});

test("characters that PostgreSQL refuses become U+FFFD, in their own column only", async () => {
  const { stored } = await store([
    { model: "a\0b", request_id: "c\ud800d", vendor: "e\0f" },
    { model: "plain" },
  ]);
  expect(stored).toMatchObject([
    { model: "a\ufffdb", request_id: "c\ufffdd", vendor: "e\ufffdf" },
    { model: "plain", vendor: "demo" },
  ]);
});
