/**
 * Calls that end while the database is unreachable are charged once, whatever happens to their
 * process (R-MON-2).
 */
import { execFile } from "node:child_process";
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { send } from "../../support/raw-http.ts";
import { killWorker } from "./workers-rig.ts";
import { gated, openServed, type Served, type ServedProcess, stream } from "./served.ts";

/** Cost of each gated call: 10 input and 5 output tokens. */
const costNanos = 10n * 250n + 5n * 2_000n;

let served: Served;
let proxy: FaultProxy;
let folder: string;
beforeAll(async () => {
  served = await openServed();
  proxy = await startFaultProxy(served.databaseUrl);
  folder = fs.mkdtempSync(join(tmpdir(), "uas-journal-life-"));
});
beforeEach(() => served.upstream.clear());
afterAll(async () => {
  await served?.close();
  await proxy?.close();
  fs.rmSync(folder, { recursive: true, force: true });
});

const start = (env: Readonly<Record<string, string>> = {}) =>
  served.start({ DATABASE_URL: proxy.url, UAS_DATA_DIR: folder, ...env });

/** The files with settlements. */
function files(): string[] {
  return fs.readdirSync(join(folder, "journal")).filter((name) => name.endsWith(".journal"));
}

/** Runs a command to its end, and returns what it printed. */
async function uas(args: readonly string[], env: Record<string, string>): Promise<string> {
  const bin = join(import.meta.dirname, "../../../bin/uas.js");
  const run = promisify(execFile);
  return (await run(process.execPath, [bin, ...args], { cwd: folder, env })).stdout;
}

/** Streams that have begun, and one way to let them end. */
async function running(url: string, key: string, requestId: string, count: number) {
  const gates = Array.from({ length: count }, gated);
  served.upstream.script(...gates.map(({ behaviour }) => behaviour));
  const replies: ReturnType<typeof stream>[] = [];
  // One after the other: several workers take them in turn.
  for (const { begun } of gates) {
    replies.push(stream(url, key, requestId));
    await begun;
  }
  return async () => {
    for (const gate of gates) gate.finish();
    for (const { body } of await Promise.all(replies)) {
      expect(body.toString()).toMatch(/finished[\s\S]*\[DONE\]\n\n$/);
    }
  };
}

async function metric(internalUrl: string, name: string): Promise<number> {
  const { body } = await send(`${internalUrl}/metrics`, { method: "GET" });
  return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(body.toString())?.[1]);
}

async function expectChargedOnce(
  accountId: string,
  requestId: string,
  count: number,
  timeout = 30_000,
) {
  await expect.poll(() => served.calls(requestId), { timeout }).toHaveLength(count);
  for (const call of await served.calls(requestId)) {
    expect(call).toMatchObject({
      ending: CallEnding.COMPLETED,
      cost: { amountNanos: costNanos },
    });
  }
  expect(await served.available(accountId)).toBe(1_000_000_000n - BigInt(count) * costNanos);
  await expect.poll(files).toEqual([]);
  expect(await served.audit()).toEqual([]);
}

describe("R-MON-2: streams that end while the database is unreachable", () => {
  let gateway: ServedProcess;
  /** Lets streams begin, takes the database away, and lets them end whole. */
  async function endWithout(requestId: string): Promise<string> {
    const { key, accountId } = await served.customer();
    const finish = await running(gateway.url, key, requestId, 4);
    proxy.refuse(true);
    proxy.cut();
    await finish();
    expect(files()).toHaveLength(1);
    return accountId;
  }

  it("are kept, and charged once when it is back", async () => {
    gateway = await start();
    const accountId = await endWithout("kept");
    expect(await metric(gateway.internalUrl, "uas_billing_journal_entries")).toBe(4);
    expect(await metric(gateway.internalUrl, "uas_billing_journal_bytes")).toBeGreaterThan(0);
    proxy.refuse(false);
    await expectChargedOnce(accountId, "kept", 4);
    expect(await metric(gateway.internalUrl, "uas_billing_journal_entries")).toBe(0);
  });

  it("are charged once by the next start where the process is killed before", async () => {
    const accountId = await endWithout("killed");
    await gateway.kill();
    proxy.refuse(false);
    gateway = await start();
    await expectChargedOnce(accountId, "killed", 4);
  });

  it("are charged once by the next start where the process stops in good order; the command line leaves them alone", async () => {
    const accountId = await endWithout("stopped");
    expect((await gateway.stop()).code).toBe(0);
    expect(gateway.out).toContain("settlements stay in the journal for the next start");
    expect(gateway.out).not.toContain("its cost is lost");
    proxy.refuse(false);
    const left = files();
    const env = { DATABASE_URL: served.databaseUrl, UAS_DATA_DIR: folder };
    expect(await uas(["account", "show", accountId], env)).toContain(accountId);
    expect(files()).toEqual(left);
    gateway = await start();
    await expectChargedOnce(accountId, "stopped", 4);
  });

  it("are charged once where one of two workers is killed before: the other keeps its own journal, and the one that replaces the dead takes its", async () => {
    expect((await gateway.stop()).code).toBe(0);
    gateway = await start({ UAS_WORKERS: "2" });
    const { key, accountId } = await served.customer();
    const finish = await running(gateway.url, key, "workers", 4);
    proxy.refuse(true);
    proxy.cut();
    await finish();
    expect(files()).toHaveLength(2);
    expect(await metric(gateway.internalUrl, "uas_billing_journal_entries")).toBe(4);
    killWorker(gateway, 1);
    await gateway.logged("a worker has died; restarting it");
    proxy.refuse(false);
    await expectChargedOnce(accountId, "workers", 4);
    expect((await gateway.stop()).code).toBe(0);
  });
});

describe("R-TSK-7: a text task and a background response whose vendor answers while the database is unreachable", () => {
  it("are completed with these answers when the database is back, and charged once", async () => {
    const gateway = await start();
    const { key, accountId } = await served.customer();
    const ask = async (path: string, body?: object): Promise<Record<string, unknown>> => {
      const reply = await send(`${gateway.url}${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return JSON.parse(reply.body.toString()) as Record<string, unknown>;
    };
    const gates = [gated(), gated()];
    served.upstream.script(...gates.map(({ behaviour }) => behaviour));
    const asked = served.upstream.requests.length;
    const task = await ask("/api/ai/tasks", { modelKey: "m", textParams: { prompt: "secret" } });
    const response = await ask("/v1/responses", { model: "m", input: "secret", background: true });
    await Promise.all(gates.map(({ begun }) => begun));
    proxy.refuse(true);
    proxy.cut();
    for (const gate of gates) gate.finish();
    await Promise.all(gates.map(({ finished }) => finished));
    proxy.refuse(false);
    const [taskPath, responsePath] = [
      `/api/ai/tasks/${String(task["taskId"])}`,
      `/v1/responses/${String(response["id"])}`,
    ];
    await expect
      .poll(() => ask(taskPath), { timeout: 30_000 })
      .toMatchObject({
        status: "completed",
        resultContent: "begun and finished",
      });
    await expect
      .poll(() => ask(responsePath), { timeout: 30_000 })
      .toMatchObject({
        status: "completed",
        output: [{ content: [{ text: "begun and finished" }] }],
      });
    expect(served.upstream.requests.length - asked).toBe(2);
    expect(await served.available(accountId)).toBe(1_000_000_000n - 2n * costNanos);
    expect(await served.audit()).toEqual([]);
    expect((await gateway.stop()).code).toBe(0);
  });
});
