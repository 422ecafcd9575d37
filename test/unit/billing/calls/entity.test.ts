/**
 * The columns of a call record are the same in the entity, the table and the type of common
 * columns.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { callKindColumns } from "../../../../src/billing/calls/entity.ts";
import { type Billing, openBilling } from "../harness.ts";

let billing: Billing;

beforeAll(async () => {
  billing = await openBilling();
});

afterAll(() => billing.close());

/** The columns of a table or composite type in their order, each with its type. */
async function columnsOf(name: "call" | "call_kind"): Promise<string[]> {
  const { rows } = await billing.pool.query<{ column: string }>(
    `select attname || ' ' || format_type(atttypid, atttypmod) as column from pg_attribute
       where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`,
    [name],
  );
  return rows.map(({ column }) => column);
}

test("the type call_kind has the common columns of the entity, in their order", async () => {
  const columns = await columnsOf("call_kind");
  expect(
    columns.map((column) => column.split(" ")[0]),
    "call_kind in the migrations, callKind in src/billing/calls/entity.ts",
  ).toEqual(callKindColumns);
});

test("the table of calls ends with the columns of call_kind, which the ledger inserts as (kind).*", async () => {
  const kind = await columnsOf("call_kind");
  expect((await columnsOf("call")).slice(-kind.length), "call in the migrations").toEqual(kind);
});
