import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { KeyUseEntity } from "../../../../src/key/entity.ts";
import { type Database, openDatabase } from "../../../../src/db/database.ts";
import { ErrorCode, GatewayError } from "../../../../src/core/errors.ts";
import { transact } from "../../../../src/db/pool/transaction.ts";
import { newId } from "../../../../src/core/uuid.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";

let scratch: TestDatabase;
let database: Database;
beforeEach(async () => {
  scratch = await createTestDatabase();
  database = await openDatabase(scratch.url);
});
afterEach(async () => {
  await database.close();
  await scratch.close();
});

const insert = "insert into key_use (key_id, use_time) values ($1, now())";

async function count(): Promise<number> {
  const { rows } = await database.pool.query<{ count: number }>(
    "select count(*)::int from key_use",
  );
  return rows[0]?.count ?? 0;
}

/** The two ways into a transaction: each writes a row, then does what the test wants. */
const ways = {
  "the ORM": (then: () => void) =>
    transact(database.orm, async (em) => {
      em.create(KeyUseEntity, { keyId: newId(), useTime: new Date() });
      await em.flush();
      then();
      return "done";
    }),
  "prepared SQL": (then: () => void) =>
    transact(database.pool, async (client) => {
      await client.query(insert, [newId()]);
      then();
      return "done";
    }),
} as const;

describe.each(Object.entries(ways))("a transaction through %s", (_name, run) => {
  test("is there for all as soon as its work is done, and gives what the work gave", async () => {
    expect(await run(() => {})).toBe("done");
    expect(await count()).toBe(1);
  });

  test("is taken back by what its work throws, which the caller gets as it is", async () => {
    const refusal = new GatewayError(ErrorCode.NOT_FOUND, "there is no such thing");
    const refused = run(() => {
      throw refusal;
    });
    await expect(refused).rejects.toBe(refusal);
    const broken = run(() => {
      throw new RangeError("a mistake");
    });
    await expect(broken).rejects.toThrow("a mistake");
    expect(await count()).toBe(0);
    expect(await run(() => {})).toBe("done");
  });
});

test("a transaction whose connection breaks is refused as the database being away, in both ways", async () => {
  const away = { code: ErrorCode.SERVICE_UNAVAILABLE };
  const breakOff = "select pg_terminate_backend(pg_backend_pid())";
  const byOrm = transact(database.orm, (em) => em.execute(breakOff));
  await expect(byOrm).rejects.toMatchObject(away);
  const bySql = transact(database.pool, (client) => client.query(breakOff));
  await expect(bySql).rejects.toMatchObject(away);
});
