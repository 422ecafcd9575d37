/** Arrays: PostgreSQL reads the same from both forms, whatever the members are. */
import * as fc from "fast-check";
import { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { binaryArray, type MemberType, textArray } from "../../../src/db/array.ts";
import { createEmptyDatabase, type TestDatabase } from "../../support/database.ts";

let scratch: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  scratch = await createEmptyDatabase();
  pool = new Pool({ connectionString: scratch.url, max: 1 });
});

afterAll(async () => {
  await pool.end();
  await scratch.close();
});

const members: Readonly<Record<MemberType, fc.Arbitrary<string | number>>> = {
  uuid: fc.uuid(),
  bigint: fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
    fc.maxSafeInteger(),
    fc.constantFrom("0", "4294967295", "4294967296", "999999999999999", "1000000000000000"),
  ),
  integer: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
  text: fc.oneof(
    fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "")),
    fc.constantFrom("", "NULL", '"', "\\", "{a,b}", " ü "),
  ),
  timestamptz: fc
    .date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true })
    .map((date) => date.toISOString()),
};

test.each(Object.keys(members) as MemberType[])(
  "members of type %s are read as they were told, from the text and from the binary form",
  async (type) => {
    const list = fc.array(fc.option(members[type], { nil: undefined }), { minLength: 1 });
    await fc.assert(
      fc.asyncProperty(list, async (items) => {
        const told = items.map((item) => (item === undefined ? null : `${item}`));
        for (const encode of [textArray, binaryArray]) {
          const { rows } = await pool.query<{ read: unknown }>(
            `select $1::${type}[]${type === "timestamptz" ? "" : "::text[]"} as read`,
            [encode(type, items, (item) => item)],
          );
          const [{ read } = { read: undefined }] = rows;
          // The driver reads times as dates.
          expect(JSON.parse(JSON.stringify(read))).toEqual(told);
        }
      }),
      { numRuns: 50 },
    );
  },
);

test.each<[MemberType, string | number]>([
  ["uuid", "x"],
  ["uuid", "0198c1d5-0000-7000-8000-00000000000g"],
  ["uuid", "0198c1d5x0000-7000-8000-000000000000"],
  ["bigint", "9223372036854775808"],
  ["bigint", "1.5"],
  ["integer", 2 ** 31],
  ["timestamptz", "yesterday at noon"],
])("PostgreSQL refuses a member of type %s that is none: %s", async (type, member) => {
  for (const encode of [textArray, binaryArray]) {
    const values = [encode(type, [member], (item) => item)];
    await expect(pool.query(`select $1::${type}[]`, values)).rejects.toMatchObject({
      code: expect.stringMatching(/^22/) as string,
    });
  }
});

test("an array without members is read as one", async () => {
  for (const encode of [textArray, binaryArray]) {
    const { rows } = await pool.query("select cardinality($1::uuid[]) as count", [
      encode("uuid", [], () => undefined),
    ]);
    expect(rows).toEqual([{ count: 0 }]);
  }
});
