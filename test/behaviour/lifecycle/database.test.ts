/** The database goes away and comes back under a running gateway (R-MON-2, R-MON-7). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { journalSuffix } from "../../../src/billing/journal/journal-files.ts";
import { type Customer, type Gateway, publicModel, startGateway } from "../../support/gateway.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { type RawReply, send } from "../../support/raw-http.ts";
import { answer } from "../../support/upstream/behaviour.ts";
import { startUpstream, type Upstream } from "../../support/upstream/upstream.ts";
import { gated } from "./served.ts";

let upstream: Upstream;
let proxy: FaultProxy;
let gateway: Gateway;
let customer: Customer;
let databaseUrl: string;
beforeAll(async () => {
  upstream = await startUpstream();
  const { baseUrl, secret } = upstream;
  gateway = await startGateway({
    vendors: { sim: { baseUrl, apiKey: secret } },
    databaseAt: async (url) => {
      databaseUrl = url;
      proxy = await startFaultProxy(url);
      return proxy.url;
    },
  });
  customer = await gateway.customer();
});
beforeEach(() => upstream.clear());
afterAll(async () => {
  await gateway?.close();
  await proxy?.close();
  await upstream?.close();
});

function chat(requestId: string, stream = false): Promise<RawReply> {
  const messages = [{ role: "user", content: "Hi" }];
  return send(`${gateway.url}/v1/chat/completions`, {
    headers: {
      authorization: `Bearer ${customer.key}`,
      "content-type": "application/json",
      "x-request-id": requestId,
    },
    body: JSON.stringify({ model: publicModel, messages, stream }),
  });
}

const away = {
  refuses: () => {
    proxy.refuse(true);
    proxy.cut();
  },
  hangs: () => proxy.hang(),
} as const;

function back(): void {
  proxy.refuse(false);
  // By now a real network would have dropped the hanging connections.
  proxy.cut();
  proxy.resume();
}

/** Returns the settlement journal. */
function journalText(): string {
  const folder = join(gateway.dataDir, "journal");
  const names = readdirSync(folder).filter((name) => name.endsWith(journalSuffix));
  return names.map((name) => readFileSync(join(folder, name), "utf8")).join("");
}

async function query(text: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

const ready = async (): Promise<number> =>
  (await send(`${gateway.url}/readyz`, { method: "GET" })).status;

it("an outage is one line when it begins and one when it ends, whatever fails meanwhile", async () => {
  const before = gateway.log.length;
  const lines = () => gateway.log.slice(before).filter((line) => /"level":[4-6]0/.test(line));
  away.refuses();
  await expect.poll(() => lines().join("")).toContain("cannot be reached");
  await expect.poll(ready).toBe(503);
  expect((await chat("during the outage")).status).toBe(503);
  back();
  await expect.poll(() => lines().join(""), { timeout: 10_000 }).toContain("answers again after");
  await expect.poll(ready).toBe(200);
  const outage = lines().filter((line) => line.includes("the database at"));
  expect(outage).toHaveLength(2);
  expect(lines().filter((line) => line.includes("ECONN"))).toEqual([]);
  expect(lines().length).toBeLessThanOrEqual(4);
});

describe.each([true, false])("a reply (streamed: %s) has come to its end only when", (stream) => {
  it("its settlement is durable: in the journal where the database does not answer", async () => {
    const requestId = `durable-${stream}`;
    const begun = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    upstream.clear();
    upstream.script(async (exchange) => {
      begun.resolve();
      await gate.promise;
      await answer({ usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })(
        exchange,
      );
    });
    const running = chat(requestId, stream);
    await begun.promise;
    away.hangs();
    gate.resolve();
    const { status, isCut } = await running;
    const kept = journalText();
    back();
    expect({ status, isCut }).toEqual({ status: 200, isCut: false });
    expect(kept).toContain(requestId);
    await expect.poll(async () => (await chat("again")).status).toBe(200);
    await expect.poll(ready).toBe(200);
    const call = await gateway.call(requestId);
    expect(call).toMatchObject({ ending: CallEnding.COMPLETED, usage: { inputTokens: 10 } });
  });
});

describe("a database that refuses the ledger's statements", () => {
  it("is a reason of /readyz, and the gateway is ready when the database is repaired", async () => {
    await query(`
      create function refuse() returns trigger language plpgsql as
        $$ begin raise insufficient_privilege; end $$;
      create trigger refused before insert on open_hold for each statement execute function refuse()`);
    const refused = await chat("refused-ledger");
    expect(refused.status).toBe(503);
    const { status, body } = await send(`${gateway.url}/readyz`, { method: "GET" });
    expect([status, body.toString()]).toEqual([
      503,
      "not ready: the database refuses statements of the ledger; the log has its reason\n",
    ]);
    await query("drop trigger refused on open_hold; drop function refuse()");
    await vi.waitUntil(async () => (await ready()) === 200, { timeout: 60_000 });
    expect((await chat("accepted-ledger")).status).toBe(200);
  });
});

describe.each(["refuses", "hangs"] as const)("a database that %s", (how) => {
  it("is 503 within about a second and never free service; it comes back, and nothing is lost", async () => {
    expect((await chat(`${how}-before`)).status).toBe(200);
    const gate = gated();
    upstream.clear();
    upstream.script(gate.behaviour);
    const running = chat(`${how}-during`, true);
    await gate.begun;
    await gateway.call(`${how}-before`);
    away[how]();

    const startMs = performance.now();
    const refused = await Promise.all([chat("refused"), chat("refused"), chat("refused", true)]);
    // The rule is one second; what is beyond is this machine's own delay.
    expect(performance.now() - startMs).toBeLessThan(3_000);
    for (const { status, headers, body } of refused) {
      expect(status).toBe(503);
      expect(Number(headers["retry-after"])).toBeGreaterThanOrEqual(1);
      expect(JSON.parse(body.toString())).toMatchObject({ error: { code: "service_unavailable" } });
    }
    expect(upstream.requests).toHaveLength(1);
    await expect.poll(ready).toBe(503);
    expect((await send(`${gateway.url}/healthz`, { method: "GET" })).status).toBe(200);

    // The running stream does not need the database until its end.
    gate.finish();
    back();
    expect((await running).body.toString()).toMatch(/finished[\s\S]*\[DONE\]\n\n$/);
    await expect.poll(ready).toBe(200);
    const works = async (): Promise<number> => (await chat(`${how}-after`)).status;
    await expect.poll(works).toBe(200);
    for (const when of ["during", "after"]) {
      const call = await gateway.call(`${how}-${when}`);
      expect(call).toMatchObject({ ending: CallEnding.COMPLETED });
      expect(call.cost?.amountNanos).toBeGreaterThan(0n);
    }
    await expect.poll(async () => (await gateway.money(customer.accountId)).held).toBe(0n);
  });
});
