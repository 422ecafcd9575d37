/** The warm-up (UAS_WARM_UP): a server is ready once the path of a call is compiled. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { send } from "../support/raw-http.ts";
import { until } from "./process.ts";
import { openServed, type Served } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await openServed();
});
afterAll(() => served.close());

it("a server says 503 on /readyz until it has warmed up, and serves, books and counts as if it had not", async () => {
  const { accountId, key } = await served.customer();
  const gateway = await served.start({ UAS_WARM_UP: "on" });
  const ready = async (): Promise<number> =>
    (await send(`${gateway.url}/readyz`, { method: "GET" })).status;
  expect(await ready()).toBe(503);
  const request = {
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
  };
  expect((await send(`${gateway.url}/v1/chat/completions`, request)).status).toBe(200);
  const line = await gateway.logged("warmed up");
  expect(line["calls"]).toBeGreaterThan(0);
  await until("it is ready", async () => ((await ready()) === 200 ? true : undefined));
  const metrics = (await send(`${gateway.internalUrl}/metrics`, { method: "GET" })).body.toString();
  expect(metrics).toContain('uas_requests_total{route="/v1/chat/completions",status="200"} 1\n');
  expect(metrics).not.toContain('vendor="warm-up"');
  const sql = "select count(*)::integer as calls from call where account_id = $1";
  const { rows } = await served.pool.query<{ calls: number }>(sql, [accountId]);
  expect(rows).toEqual([{ calls: 1 }]);
  expect(served.upstream.requests).toHaveLength(1);
  expect((await gateway.stop()).code).toBe(0);
});

it("a server that is stopped while it warms up ends in good order", async () => {
  const gateway = await served.start({ UAS_WARM_UP: "on" });
  const { code, err } = await gateway.stop();
  expect({ code, err }).toEqual({ code: 0, err: "" });
});
