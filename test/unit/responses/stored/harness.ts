/** A database with the tables of the kept state, and responses to keep in it. */
import { Pool } from "pg";
import { afterAll, beforeAll } from "vitest";
import type { JsonRecord } from "../../../../src/wire/json/value.ts";
import type { NewResponse } from "../../../../src/responses/stored/response-store.ts";
import { createTestDatabase, type TestDatabase } from "../../../support/database.ts";
import { newId } from "../../../../src/core/uuid.ts";

/** Ready from `beforeAll` on. */
export interface Fixture {
  readonly pool: Pool;
}

/** Registers a database for a test file. */
export function useDatabase(): Fixture {
  const fixture = {} as { pool: Pool };
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    fixture.pool = new Pool({ connectionString: database.url, max: 4 });
    fixture.pool.on("error", () => {});
  });
  afterAll(async () => {
    await fixture.pool.end();
    await database.close();
  });
  return fixture;
}

/** Returns a new account. */
export function newAccount(): string {
  return newId();
}

/** An id that no other response has. */
export function newResponseId(): string {
  return `resp_${newId().replaceAll("-", "")}`;
}

/** An answer as its output item. */
export function answer(text: string, id = `msg_${text}`): JsonRecord {
  const content = [{ type: "output_text", text, annotations: [] }];
  return { id, type: "message", role: "assistant", status: "completed", content };
}

/** A response that answers "Hello" with `text`, but for what `changed` says. */
export function response(
  accountId: string,
  text: string,
  changed: Partial<Omit<NewResponse, "input">> & {
    readonly output?: readonly JsonRecord[];
    /** A text or items; their JSON is made here. */
    readonly input?: unknown;
  } = {},
): NewResponse {
  const { output = [answer(text)], input = "Hello", ...rest } = changed;
  const responseId = rest.responseId ?? newResponseId();
  const body = { id: responseId, object: "response", model: "public-model", output };
  return {
    accountId,
    responseId,
    model: "public-model",
    previousResponseId: undefined,
    response: Buffer.from(JSON.stringify(body)),
    input: JSON.stringify(input),
    ...rest,
  };
}

/** Makes rows look as if they ended `seconds` ago. */
export async function expire(pool: Pool, table: string, accountId: string, seconds = 1) {
  const text = `update ${table} set expires_at = now() - $2 * interval '1 s' where account_id = $1`;
  await pool.query(text, [accountId, seconds]);
}
