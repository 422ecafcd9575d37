/** The health of routes and credentials, from the records of calls (R-RTE-3). */
import { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { AttemptRow } from "../../../src/billing/calls/call-row.ts";
import type { Config } from "../../../src/config/config.ts";
import { newId } from "../../../src/core/uuid.ts";
import { percentile, readRouteHealth, targetKey } from "../../../src/operator/route-health.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";

let database: TestDatabase;
let pool: Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ connectionString: database.url, max: 2 });
});
afterEach(() => pool.query("delete from call"));
afterAll(async () => {
  await pool.end();
  await database.close();
});

const config = {
  models: new Map([["m", { routes: [{ vendor: "v", model: "x" }] }]]),
  vendors: new Map([["v", { credentials: [{ name: "A" }] }]]),
} as unknown as Pick<Config, "models" | "vendors">;

interface Facts {
  readonly attempts?: readonly AttemptRow[];
  readonly firstByteMs?: number;
  readonly ending?: CallEnding;
}

async function record({ attempts, firstByteMs = 0, ending }: Facts): Promise<void> {
  await pool.query(
    `insert into call (id, account_id, request_id, key_id, model, vendor, path, stream, status, error_code, ending,
      usage_source, input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, cost, held,
      price_version, start_time, duration_ms, first_byte_ms, upstream_request_id, attempts)
    values ($1, $2, '', '', 'm', 'v', '', false, 200, '', $3, 1, 0, 0, 0, 0, 0, 0, 0, '', now(), 1, $4, '', $5)`,
    [
      newId(),
      newId(),
      ending ?? (firstByteMs > 0 ? CallEnding.COMPLETED : CallEnding.UPSTREAM_FAILED),
      firstByteMs,
      attempts === undefined ? null : JSON.stringify(attempts),
    ],
  );
}

const attempt = (more: Partial<AttemptRow>): AttemptRow => ({
  ...{ vendor: "v", model: "x", credential: "A", duration_ms: 5 },
  ...more,
});
const failed = (failure: string) => attempt({ error_code: "upstream_error", failure });
const read = async (name: { readonly model?: string; readonly credential?: string }) => {
  const all = await readRouteHealth(pool, config, Date.now());
  return all.get(targetKey({ vendor: "v", model: "", credential: "", ...name }));
};

it("counts each attempt at its route and its credential, answered ones also without a choice", async () => {
  await record({ firstByteMs: 20 });
  await record({ attempts: [failed("server"), attempt({})], firstByteMs: 99 });
  await record({ attempts: [failed("server")] });
  await record({ ending: CallEnding.UPSTREAM_REFUSED });
  for (const name of [{ model: "x" }, { credential: "A" }]) {
    expect(await read(name)).toMatchObject({
      attempts: 5,
      failures: 2,
      lastFailure: { failure: "server" },
    });
  }
  expect((await read({ model: "x" }))?.durationsMs).toEqual([20, 5, 0]);
});

it("shows the breaker of a process that had made all these attempts, until one succeeds (R-RTE-1)", async () => {
  await record({ attempts: [failed("model")] });
  expect((await read({ model: "x" }))?.breaker.open?.failure).toBe("model");
  expect((await read({ credential: "A" }))?.breaker.open).toBeUndefined();
  await record({ attempts: [failed("credential"), failed("rate_limit")] });
  expect((await read({ credential: "A" }))?.breaker.open?.failure).toBe("credential");
  await record({ firstByteMs: 20 });
  for (const name of [{ model: "x" }, { credential: "A" }]) {
    expect((await read(name))?.breaker.open).toBeUndefined();
  }
});

it("percentiles are those of the times", () => {
  expect(percentile([], 0.5)).toBeUndefined();
  expect([0.5, 0.95].map((part) => percentile([30, 10, 20, 40], part))).toEqual([20, 40]);
});
