/** Memory of an answered statement. */
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import { DatabaseServer } from "../../../src/db/pool/server.ts";
import { createTestDatabase } from "../../support/database.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as (options?: { readonly type: "minor" }) => void;

/** Returns the memory that only a full collection frees. */
function oldBytes(): number {
  return getHeapSpaceStatistics()
    .filter(({ space_name: name }) => name === "old_space" || name === "large_object_space")
    .reduce((sum, { space_used_size: bytes }) => sum + bytes, 0);
}

test("an answered statement is freed by collections of the young generation, and not kept until a full one", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const client = new DatabaseServer(scratch.url).createClient();
  onTestFinished(() => client.end());
  await client.connect();
  const statement = { name: "long_row", text: "select repeat('x', $1::integer) as text" };
  let chars = 0;
  const run = async (): Promise<void> => {
    const { rows } = await client.query<{ text: string }>({ ...statement, values: [20_000] });
    chars += rows[0]?.text.length ?? 0;
  };
  for (let i = 0; i < 50; i++) await run();
  collect();
  const before = oldBytes();
  for (let i = 0; i < 400; i++) {
    await run();
    // Twice: what is alive at the second one is moved to the old generation.
    if (i % 10 === 9) for (let each = 0; each < 2; each++) collect({ type: "minor" });
  }
  expect(chars).toBe(450 * 20_000);
  // All rows together have 8 MB.
  expect(oldBytes() - before).toBeLessThan(2_000_000);
});

test("a failed statement contains its place in the program", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const client = new DatabaseServer(scratch.url).createClient();
  onTestFinished(() => client.end());
  await client.connect();
  async function asks(): Promise<void> {
    await client.query("select no_such_column");
  }
  const error = (await asks().catch((failure: unknown) => failure)) as Error & { code: string };
  expect(error.code).toBe("42703");
  expect(error.stack).toContain("asks");
});
