/** The end of a process: drained, impatient, or killed. No hold is lost, no money is wrong. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { send } from "../../support/raw-http.ts";
import { failure } from "../../support/upstream/behaviour.ts";
import { makePlace, operatorToken, Process, until } from "./process.ts";
import { gated, openServed, type Served, stream } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await openServed();
});
beforeEach(() => served.upstream.clear());
afterAll(() => served?.close());

/** Returns the output of a command. */
async function uas(...args: readonly string[]): Promise<string> {
  const bin = join(import.meta.dirname, "../../../bin/uas.js");
  const env = { DATABASE_URL: served.databaseUrl };
  const run = promisify(execFile);
  return (await run(process.execPath, [bin, ...args, "--json"], { cwd: tmpdir(), env })).stdout;
}

describe("SIGTERM", () => {
  it("R-OPS-2: is not ready at once and serves for UAS_DRAIN_DELAY, each reply asking its client to connect anew", async () => {
    const { key } = await served.customer();
    const process = await served.start({ UAS_DRAIN_DELAY: "1s" });
    const { url, internalUrl } = process;
    process.signal("SIGTERM");
    await process.logged("stopping");
    for (const address of [url, internalUrl]) {
      const ready = await send(`${address}/readyz`, { method: "GET" });
      expect(ready).toMatchObject({ status: 503, headers: { connection: "close" } });
    }
    for (const reply of await Promise.all([1, 2, 3].map(() => stream(url, key, "late")))) {
      expect(reply).toMatchObject({ status: 200, headers: { connection: "close" } });
      expect(reply.body.toString()).toContain("data: [DONE]");
    }
    await process.logged("draining");
    const { code, err } = await process.ended;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(await served.calls("late")).toHaveLength(3);
    expect(await served.held()).toBe(0n);
  });

  it("drains: takes no new connections, running streams finish whole and are settled, exit 0", async () => {
    const { key } = await served.customer();
    const process = await served.start();
    const { url, internalUrl } = process;
    const gate = gated();
    served.upstream.always(gate.behaviour);
    const running = stream(url, key, "drained");
    await gate.begun;
    expect(await served.held()).toBeGreaterThan(0n);
    process.signal("SIGTERM");
    await process.logged("draining");
    for (const address of [url, internalUrl]) {
      const refused = send(`${address}/healthz`, { method: "GET" });
      await expect(refused).rejects.toMatchObject({ code: "ECONNREFUSED" });
    }
    expect(served.upstream.requests).toHaveLength(1);

    gate.finish();
    const { body, status, isCut } = await running;
    expect({ status, isCut }).toEqual({ status: 200, isCut: false });
    expect(body.toString()).toMatch(/begun[\s\S]* and finished[\s\S]*data: \[DONE\]\n\n$/);
    const { code, err } = await process.ended;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(process.out).toContain('"msg":"stopped"');
    expect(await served.held()).toBe(0n);
    expect(await served.calls("drained")).toMatchObject([
      { ending: CallEnding.COMPLETED, cost: { amountNanos: 10n * 250n + 5n * 2_000n } },
    ]);
    expect(await served.audit()).toEqual([]);
  });

  it("a second SIGTERM or SIGINT ends the process without a drain", async () => {
    const { key } = await served.customer();
    const process = await served.start();
    const gate = gated();
    served.upstream.always(gate.behaviour);
    const running = stream(process.url, key).catch(() => undefined);
    await gate.begun;
    process.signal("SIGTERM");
    await process.logged("draining");
    // Again and again: what comes at once could be the first one's echo.
    await until("it has ended", () => {
      if (process.isRunning) process.signal("SIGINT");
      return process.isRunning ? undefined : true;
    });
    expect((await process.ended).code).toBe(1);
    gate.finish();
    await running;
    await served.expireHolds();
    expect(await served.held()).toBe(0n);
    expect(await served.audit()).toEqual([]);
  });
});

describe("SIGHUP", () => {
  it("R-OPS-1: SIGHUP puts the file into force in a gateway of one process; a faulty one changes nothing", async () => {
    const { key } = await served.customer();
    const gateway = await served.start();
    served.configure((yaml) => `${yaml}no_such_key: 1\n`);
    gateway.signal("SIGHUP");
    const refused = "the configuration was not loaded; the previous one stays in force";
    expect((await gateway.logged(refused))["reason"]).toContain("no_such_key: unknown key");
    served.configure((yaml) => yaml.replace("no_such_key: 1\n", "").replace("  m:", "  renamed:"));
    onTestFinished(() => served.configure((yaml) => yaml.replace("  renamed:", "  m:")));
    expect((await stream(gateway.url, key)).status).toBe(200);
    gateway.signal("SIGHUP");
    await gateway.logged("the configuration was loaded");
    expect((await stream(gateway.url, key)).status).toBe(404);
    expect((await gateway.stop()).code).toBe(0);
  });

  it("R-OPS-2: SIGHUP during a stop cuts no call", async () => {
    const { key } = await served.customer();
    const gateway = await served.start({ UAS_DRAIN_DELAY: "500ms" });
    const gate = gated();
    served.upstream.always(gate.behaviour);
    const running = stream(gateway.url, key, "hung-up");
    await gate.begun;
    gateway.signal("SIGTERM");
    await gateway.logged("draining");
    gateway.signal("SIGHUP");
    gate.finish();
    const { body, isCut } = await running;
    expect(isCut).toBe(false);
    expect(body.toString()).toMatch(/ and finished[\s\S]*data: \[DONE\]\n\n$/);
    const { code, err } = await gateway.ended;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(await served.held()).toBe(0n);
  });
});

describe("the embedded PostgreSQL", () => {
  it.each(["1", "2"])(
    "R-OPS-2: a second SIGTERM stops the embedded PostgreSQL before the process ends (UAS_WORKERS=%s)",
    async (workers) => {
      const place = makePlace();
      const gateway = new Process(place, { UAS_DRAIN_DELAY: "10m", UAS_WORKERS: workers });
      onTestFinished(async () => {
        await gateway.kill();
        place.close();
      });
      await gateway.listening();
      const mark = join(place.folder, ".data/postgres/postmaster.pid");
      expect(existsSync(mark)).toBe(true);
      gateway.signal("SIGTERM");
      await gateway.logged("stopping");
      // Again and again: what comes at once could be the first one's echo.
      await until("it has ended", () => {
        if (gateway.isRunning) gateway.signal("SIGTERM");
        return gateway.isRunning ? undefined : true;
      });
      expect((await gateway.ended).code).toBe(1);
      expect(existsSync(mark)).toBe(false);
    },
  );
});

describe("kill -9", () => {
  it("R-MON-7: money of calls that were running is free again by expiry, and the books are right", async () => {
    const { key, accountId } = await served.customer();
    const first = await served.start();
    const gates = [gated(), gated(), gated()];
    served.upstream.script(...gates.map(({ behaviour }) => behaviour));
    // Any ID that clients may choose; none may have been recorded by then.
    const requestId = `killed"{\\},null`;
    const running = gates.map(() => stream(first.url, key, requestId).catch(() => undefined));
    await Promise.all(gates.map(({ begun }) => begun));
    await first.kill();
    await Promise.all(running);
    for (const gate of gates) gate.finish();
    expect(await served.held()).toBeGreaterThan(0n);
    expect(await served.audit()).toEqual([]);
    // The next process serves at once, with what is not held.
    const second = await served.start();
    const reply = await stream(second.url, key, "after");
    expect(reply.status).toBe(200);
    await expect.poll(() => served.calls("after")).toHaveLength(1);
    expect(await served.expireHolds()).toBe(3);
    expect(await served.held()).toBe(0n);
    // R-ID-4: they are found by the request id that their client knows.
    const found = JSON.parse(await uas("calls", "show", requestId, "--all")) as object[];
    const lost = { requestId, accountId, ending: "gateway_lost" };
    expect(found).toEqual([1, 2, 3].map(() => expect.objectContaining(lost)));
    const { rows } = await served.pool.query<{ available: string }>(
      "select available::text from balance where account_id = $1",
      [accountId],
    );
    const [call] = await served.calls("after");
    expect(BigInt(rows[0]?.available ?? 0) + (call?.cost?.amountNanos ?? 0n)).toBe(1_000_000_000n);
    expect(await served.audit()).toEqual([]);
    expect((await second.stop()).code).toBe(0);
  });
});

describe("R-AUTH-4", () => {
  it("nothing that a process writes has a key of any slot, a vendor's secret or the operator token", async () => {
    const { key } = await served.customer();
    const process = await served.start();
    const { url, internalUrl } = process;
    const unknown = `uas_${"CANARY".repeat(5)}zz`;
    const body = JSON.stringify({ model: "m", messages: [] });
    served.upstream.script(
      failure(401, { message: `bad key ${served.upstream.secret}` }),
      failure(500),
    );
    let requests = 0;
    for (const secret of [key, unknown, operatorToken]) {
      for (const base of [url, internalUrl]) {
        for (const path of [
          "/v1/chat/completions",
          "/v1/models/x",
          "/none",
          "/uas.key.v1.KeyService/ListKeys",
        ]) {
          for (const [query, slot] of [
            ["", { authorization: `Bearer ${secret}` }],
            ["", { "x-api-key": secret }],
            [`?api-key=${secret}`, {}],
          ] as const) {
            const headers = { ...slot, "content-type": "application/json" };
            await send(`${base}${path}${query}`, { headers, body });
            requests++;
          }
        }
      }
    }
    expect(requests).toBe(72);
    const { out, err, code } = await process.stop();
    expect(code).toBe(0);
    const said = `${out}${err}`;
    expect(said.split("\n").length).toBeGreaterThan(10);
    for (const secret of [key, unknown, operatorToken, served.upstream.secret]) {
      expect(said.includes(secret), `${secret.slice(0, 8)}…`).toBe(false);
      expect(said.includes(secret.slice(8, -4)), `${secret.slice(0, 8)}… in part`).toBe(false);
    }
  });
});
