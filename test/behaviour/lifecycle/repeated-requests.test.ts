/** A request that is repeated with its `Idempotency-Key` after its process was killed. */
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { type RawReply, send } from "../../support/raw-http.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { gated, openServed, type Served } from "./served.ts";

/** Cost of an answer of the simulated vendor. */
const costNanos = 11n * 250n + 7n * 2_000n;

let served: Served;
beforeAll(async () => {
  served = await openServed();
});
beforeEach(() => served.upstream.clear());
afterAll(() => served?.close());

const body = { model: "m", messages: [{ role: "user", content: "Hi" }], stream: true };

function ask(url: string, key: string, idempotencyKey: string): Promise<RawReply> {
  const authorization = `Bearer ${key}`;
  const type = { "content-type": "application/json" };
  const headers = { authorization, ...type, "idempotency-key": idempotencyKey };
  return send(`${url}/v1/chat/completions`, { headers, body: JSON.stringify(body) });
}

it("runs again after a kill before the charge, in another process, and is charged once", async () => {
  const { accountId, key } = await served.customer();
  const [killed, other] = [await served.start(), await served.start()];
  const gate = gated();
  served.upstream.script(gate.behaviour, answer({ text: ["Hello"] }));
  const lost = ask(killed.url, key, "killed").catch(() => undefined);
  await gate.begun;
  expect((await ask(other.url, key, "killed")).status).toBe(409);
  await killed.kill();
  await lost;
  // As if the killed process had been silent for a minute, and the other one had not.
  await served.pool.query("update node set steady_time = steady_time - interval '1 minute'");
  const silent = "update node set seen_time = seen_time - interval '1 minute'";
  await served.pool.query(`${silent} where id = (select node_id from open_hold)`);
  await expect
    .poll(async () => (await ask(other.url, key, "killed")).status, { timeout: 60_000 })
    .toBe(200);
  const repeated = await ask(other.url, key, "killed");
  expect(repeated.headers["idempotent-replayed"]).toBe("true");
  expect(await served.available(accountId)).toBe(1_000_000_000n - costNanos);
  expect(served.upstream.requests).toHaveLength(2);
  expect(await served.audit()).toEqual([]);
  await other.stop();
});

it("gets the reply of a process that was killed after it", async () => {
  const { accountId, key } = await served.customer();
  const killed = await served.start();
  const first = await ask(killed.url, key, "replied");
  await killed.kill();
  const other = await served.start();
  const second = await ask(other.url, key, "replied");
  expect(second.body.toString()).toBe(first.body.toString());
  expect(second.headers["idempotent-replayed"]).toBe("true");
  expect(await served.available(accountId)).toBe(1_000_000_000n - costNanos);
  await other.stop();
});
