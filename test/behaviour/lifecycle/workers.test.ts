/**
 * Several processes behind one address (UAS_WORKERS): they share the work, the metrics and the end.
 */
import { execFile } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { existsSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { send } from "../../support/raw-http.ts";
import { makePlace, Process, until } from "./process.ts";
import { gated, openServed, type Served, type ServedProcess, stream } from "./served.ts";
import {
  callAll,
  isAlive,
  killWorker,
  lineOf,
  call,
  logLines,
  operate,
  pidsOf,
  readMetrics,
} from "./workers-rig.ts";

let served: Served;
beforeAll(async () => {
  served = await openServed();
});
beforeEach(() => served.upstream.clear());
afterAll(() => served?.close());

const startTwo = (): Promise<ServedProcess> => served.start({ UAS_WORKERS: "2" });

const answeredCalls = 'uas_requests_total{route="/v1/chat/completions",status="200"}';

/**
 * Streams that have begun, one in each of two workers: connections that come one after the other
 * are handed out in turn.
 */
async function begin(process: ServedProcess, key: string, name: string) {
  const gates = [gated(), gated()];
  served.upstream.script(...gates.map(({ behaviour }) => behaviour));
  const replies: ReturnType<typeof stream>[] = [];
  for (const [index, gate] of gates.entries()) {
    replies.push(stream(process.url, key, `${name}-${index}`));
    await gate.begun;
  }
  return {
    finish: () => gates.forEach((gate) => gate.finish()),
    replies: Promise.all(replies.map((reply) => reply.catch(() => undefined))),
  };
}

/** The value of the model `m` in a configuration. */
function modelLine(yaml: string): string {
  return /^ {2}m: (.*)$/m.exec(yaml)?.[1] ?? "";
}

/** Every process of it has ended. */
async function expectNoneLeft(process: Process): Promise<void> {
  const pids = [...pidsOf(process).values()].flat();
  expect(pids.length).toBeGreaterThan(1);
  await until("all workers have ended", () => pids.every((pid) => !isAlive(pid)) || undefined);
}

describe("two workers", () => {
  let gateway: ServedProcess;
  let customer: { readonly accountId: string; readonly key: string };
  beforeAll(async () => {
    gateway = await startTwo();
    customer = await served.customer();
  });
  afterAll(() => gateway?.kill());

  it("two workers serve on the same ports, and every line of the log is whole and names its worker", async () => {
    const statuses = await callAll(gateway, customer.key, [1, 2]);
    expect([...statuses.values()]).toEqual([200, 200]);
    for (const url of [gateway.url, gateway.internalUrl])
      expect((await send(`${url}/readyz`, { method: "GET" })).status).toBe(200);
    const requests = logLines(gateway).filter(({ msg }) => msg === "call");
    expect(requests.length).toBeGreaterThan(1);
    for (const { worker } of requests) expect([1, 2]).toContain(worker);
    expect(await gateway.logged("listening")).toMatchObject({ workers: 2 });
    expect(gateway.out.match(/UAS Gateway listens on/g)).toHaveLength(1);
    expect(gateway.err).toBe("");
  });

  it("their metrics are one text, whichever of them serves it", async () => {
    const before = (await readMetrics(gateway)).get(answeredCalls) ?? 0;
    for (let request = 0; request < 6; request++) await call(gateway, customer.key);
    // A request is counted when its connection has closed: with the last one all four scrapes say
    // the same.
    await until("six more are counted", async () =>
      (await readMetrics(gateway)).get(answeredCalls) === before + 6 ? true : undefined,
    );
    for (let scrape = 0; scrape < 4; scrape++) {
      const metrics = await readMetrics(gateway);
      expect(metrics.get(answeredCalls)).toBe(before + 6);
      expect(metrics.get("uas_workers")).toBe(2);
      expect(metrics.get("uas_worker_restarts_total")).toBe(0);
      // Gauges of the whole database are not counted once per worker; here the value is 0.
      expect(metrics.get('uas_tasks{state="running"}')).toBe(0);
      expect(metrics.get("process_start_time_seconds")).toBeLessThan(Date.now() / 1000);
    }
  });

  it("R-AUTH-3: a disabled key is refused by each of them within 1 s", async () => {
    const { key, accountId } = await served.customer();
    expect([...(await callAll(gateway, key, [1, 2])).values()]).toEqual([200, 200]);
    const { keys } = (await operate(gateway, "uas.key.v1.KeyService/ListKeys", { accountId })) as {
      readonly keys: readonly { readonly keyId: string }[];
    };
    await operate(gateway, "uas.key.v1.KeyService/DisableKey", { keyId: keys[0]?.keyId });
    const disabledMs = performance.now();
    let admittedMs = disabledMs;
    for (const refusing = new Set<unknown>(); refusing.size < 2; ) {
      const { status, requestId } = await call(gateway, key);
      if (status !== 401) admittedMs = performance.now();
      else refusing.add((await lineOf(gateway, requestId))["worker"]);
    }
    expect(admittedMs - disabledMs).toBeLessThan(1_000);
    expect([...(await callAll(gateway, key, [1, 2])).values()]).toEqual([401, 401]);
  });

  it("kill -9 of one ends its own calls only; it is replaced, and what it counted stays", async () => {
    const { key } = customer;
    const running = await begin(gateway, key, "killed");
    const before = await readMetrics(gateway);
    const victim = killWorker(gateway, 1);
    const death = await gateway.logged("a worker has died; restarting it");
    expect(death).toMatchObject({ worker: 1, pid: victim, signal: "SIGKILL", waitMs: 500 });

    // The other one serves on.
    expect((await callAll(gateway, key, [2])).get(2)).toBe(200);
    running.finish();
    const replies = await running.replies;
    const whole = replies.filter((reply) => reply !== undefined && !reply.isCut);
    expect(whole).toHaveLength(1);
    expect(whole[0]?.body.toString()).toMatch(
      /begun[\s\S]* and finished[\s\S]*data: \[DONE\]\n\n$/,
    );

    // The replacement has its number, and another process id.
    await until("it is replaced", () => (pidsOf(gateway).get(1)?.length === 2 ? true : undefined));
    expect(pidsOf(gateway).get(1)?.[1]).not.toBe(victim);
    expect([...(await callAll(gateway, key, [1, 2])).values()]).toEqual([200, 200]);
    const after = await readMetrics(gateway);
    expect(after.get("uas_worker_restarts_total")).toBe(1);
    expect(after.get("uas_workers")).toBe(2);
    for (const name of [answeredCalls, "uas_gateway_overhead_seconds_count"])
      expect(after.get(name), name).toBeGreaterThanOrEqual(before.get(name) ?? Number.NaN);
    await served.expireHolds();
    await expect.poll(() => served.held()).toBe(0n);
    expect(await served.audit()).toEqual([]);
  });

  it("one that dies again soon is started again after a longer pause", async () => {
    const again = killWorker(gateway, 1);
    const death = await until("its death is in the log", () =>
      logLines(gateway).find(
        ({ msg, pid }) => String(msg).startsWith("a worker has died") && pid === again,
      ),
    );
    expect(death).toMatchObject({ worker: 1, waitMs: 1_000 });
    await until("it is replaced", () => (pidsOf(gateway).get(1)?.length === 3 ? true : undefined));
  });

  it("SIGTERM drains all of them: no new connections, running streams finish whole and are settled, exit 0", async () => {
    const running = await begin(gateway, customer.key, "drained");
    gateway.signal("SIGTERM");
    await gateway.logged("draining");
    await until("nobody listens", () =>
      send(`${gateway.url}/healthz`, { method: "GET" }).then(
        () => undefined,
        (error: NodeJS.ErrnoException) => error.code === "ECONNREFUSED" || undefined,
      ),
    );
    running.finish();
    for (const reply of await running.replies) {
      expect(reply).toMatchObject({ status: 200, isCut: false });
      expect(reply?.body.toString()).toMatch(/finished[\s\S]*data: \[DONE\]\n\n$/);
    }
    const { code, err } = await gateway.ended;
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const workers = await Promise.all([0, 1].map((index) => lineOf(gateway, `drained-${index}`)));
    expect(new Set(workers.map(({ worker }) => worker))).toEqual(new Set([1, 2]));
    expect(gateway.out).toContain('"msg":"stopped"');
    expect(await served.held()).toBe(0n);
    expect(await served.audit()).toEqual([]);
    await expectNoneLeft(gateway);
  });
});

describe("a supervisor", () => {
  it("R-OPS-2: replaces all workers on SIGHUP, with the configuration as it is now, and no call fails", async () => {
    const { key } = await served.customer();
    const gateway = await served.start({ UAS_WORKERS: "2", UAS_DRAIN_DELAY: "500ms" });
    const counted = async (): Promise<number> =>
      (await readMetrics(gateway)).get(answeredCalls) ?? 0;
    const first = [1, 2].map((worker) => pidsOf(gateway).get(worker)?.[0]);
    // A faulty configuration changes nothing.
    served.configure((yaml) => `${yaml}no_such_key: 1\n`);
    gateway.signal("SIGHUP");
    expect((await gateway.logged("workers were not replaced"))["reason"]).toContain("no_such_key");
    served.configure((yaml) => yaml.replace("no_such_key: 1\n", `  m2: ${modelLine(yaml)}\n`));
    expect((await call(gateway, key, "m2")).status).toBe(404);

    const running = await begin(gateway, key, "replaced");
    const statuses = new Map<string, number>();
    let calls = 0;
    const isDone = (): boolean => gateway.out.includes('"msg":"all workers are replaced"');
    const load = [1, 2, 3].map(async () => {
      for (; !isDone(); calls++) {
        // Connections are used again, as SDKs do.
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        const body = JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] });
        const url = `${gateway.url}/v1/chat/completions`;
        const reply = await fetch(url, { method: "POST", headers, body });
        const ready = await fetch(`${gateway.url}/readyz`);
        const text = `${reply.status} ${ready.status}`;
        await Promise.all([reply.text(), ready.text()]);
        statuses.set(text, (statuses.get(text) ?? 0) + 1);
      }
    });
    gateway.signal("SIGHUP");
    await until("the first new worker serves", () => pidsOf(gateway).get(1)?.[1]);
    running.finish();
    for (const reply of await running.replies) expect(reply?.isCut).toBe(false);
    await Promise.all(load);
    expect([...statuses]).toEqual([["200 200", calls]]);
    for (const pid of first) expect(isAlive(pid ?? 0)).toBe(false);
    expect([...(await callAll(gateway, key, [1, 2], "m2")).values()]).toEqual([200, 200]);
    // Counts of replaced workers stay, and no worker died.
    await until("all are counted", async () => (await counted()) >= calls + 4 || undefined);
    expect((await readMetrics(gateway)).get("uas_worker_restarts_total")).toBe(0);
    expect((await gateway.stop()).code).toBe(0);
    expect(await served.held()).toBe(0n);
  });

  it("R-OPS-2: a supervisor that gets SIGTERM while it replaces workers ends them all, new and old, and its PostgreSQL", async () => {
    const place = makePlace();
    const gateway = new Process(place, { UAS_WORKERS: "2" });
    onTestFinished(async () => {
      await gateway.kill();
      place.close();
    });
    await gateway.listening();
    gateway.signal("SIGHUP");
    await gateway.logged("replacing all workers");
    // The new worker takes a second to its first line: the old one has got no order to stop.
    expect(pidsOf(gateway).get(1)).toHaveLength(1);
    const { code, err } = await gateway.stop();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(gateway.out).not.toContain("workers were not replaced");
    await expectNoneLeft(gateway);
    expect(existsSync(join(place.folder, ".data/postgres/postmaster.pid"))).toBe(false);
  });

  it("that is killed with its workers loses nothing that was acknowledged: the next start replaces the PostgreSQL that is left", async () => {
    const place = makePlace();
    const first = new Process(place, { UAS_WORKERS: "2" });
    const processes = [first];
    onTestFinished(async () => {
      for (const process of processes) await process.kill();
      place.close();
    });
    const { url } = await first.listening();
    const key = /API key +(uas_[A-Za-z0-9]{32})\n/.exec(first.out)?.[1] ?? "";
    const mark = join(place.folder, ".data/postgres/postmaster.pid");
    const serverPid = (): string => readFileSync(mark, "utf8").split("\n")[0] ?? "";
    const pid = serverPid();
    expect(
      (await call(Object.assign(first, { url, internalUrl: "" }), key, "demo/instant")).status,
    ).toBe(200);
    await first.kill();
    await expectNoneLeft(first);
    const second = new Process(place, { UAS_WORKERS: "2" });
    processes.push(second);
    const again = Object.assign(second, await second.listening());
    expect(serverPid()).not.toBe(pid);
    expect((await call(again, key, "demo/instant")).status).toBe(200);
    expect((await second.stop()).code).toBe(0);
    expect(existsSync(mark)).toBe(false);
  });

  it("a supervisor ends all workers at once on a second signal", async () => {
    const { key } = await served.customer();
    const gateway = await startTwo();
    const running = await begin(gateway, key, "impatient");
    gateway.signal("SIGINT");
    await gateway.logged("draining");
    await until("it has ended", () => {
      if (gateway.isRunning) gateway.signal("SIGTERM");
      return gateway.isRunning ? undefined : true;
    });
    expect((await gateway.ended).code).toBe(1);
    await expectNoneLeft(gateway);
    running.finish();
    await running.replies;
    await served.expireHolds();
    expect(await served.held()).toBe(0n);
    expect(await served.audit()).toEqual([]);
  });

  it("that is killed leaves no worker behind, and the calls that run end whole", async () => {
    const { key } = await served.customer();
    const gateway = await startTwo();
    const running = await begin(gateway, key, "orphaned");
    gateway.signal("SIGKILL");
    running.finish();
    for (const reply of await running.replies) {
      expect(reply).toMatchObject({ status: 200, isCut: false });
      expect(reply?.body.toString()).toMatch(/finished[\s\S]*data: \[DONE\]\n\n$/);
    }
    await expectNoneLeft(gateway);
    expect(await served.held()).toBe(0n);
    expect(await served.audit()).toEqual([]);
  });

  it.each(["UAS_LISTEN", "UAS_INTERNAL_LISTEN"])(
    "says in one line that a port is taken (%s), exit 1, and nothing is left running",
    async (variable) => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
      const place = makePlace();
      const env = {
        DATABASE_URL: served.databaseUrl,
        UAS_MASTER_KEY: served.masterKey,
        UAS_WORKERS: "2",
        [variable]: address,
      };
      const { code, err } = await new Process(place, env).ended;
      await new Promise((resolve) => server.close(resolve));
      place.close();
      expect(code).toBe(1);
      const reason = "another program uses the port";
      expect(err).toBe(`uas: cannot listen on ${address}: ${reason}; set ${variable}=HOST:PORT\n`);
    },
  );

  it("one worker needs no supervisor: one process serves, and its log names no worker", async () => {
    const { key } = await served.customer();
    const gateway = await served.start({ UAS_WORKERS: "1" });
    const { requestId } = await call(gateway, key);
    expect(await lineOf(gateway, requestId)).not.toHaveProperty("worker");
    const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "ppid="]);
    const parents = stdout.split("\n").map(Number);
    expect(parents).toContain(process.pid);
    expect(parents).not.toContain(gateway.pid);
    expect((await readMetrics(gateway)).get("uas_workers")).toBe(1);
    expect(await gateway.logged("listening")).not.toHaveProperty("workers");
    expect((await gateway.stop()).code).toBe(0);
  });

  it("a supervisor is not started with a number of workers that is none: one line says what to write", async () => {
    const place = makePlace();
    const { code, err, out } = await new Process(place, { UAS_WORKERS: "many" }).ended;
    place.close();
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(
      /^UAS_WORKERS: must be a number of processes from 1 to 64, or auto [^\n]*\n$/,
    );
  });

  it("a supervisor runs the one embedded database of its workers, and stops it", async () => {
    const place = makePlace();
    const gateway = new Process(place, { UAS_WORKERS: "2" });
    onTestFinished(async () => {
      await gateway.kill();
      place.close();
    });
    const { url, internalUrl } = await gateway.listening();
    const key = /API key +(uas_[A-Za-z0-9]{32})\n/.exec(gateway.out)?.[1] ?? "";
    const statuses = await callAll(
      Object.assign(gateway, { url, internalUrl }),
      key,
      [1, 2],
      "demo/instant",
    );
    expect([...statuses.values()]).toEqual([200, 200]);
    const { code, err } = await gateway.stop();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    await expectNoneLeft(gateway);
    expect(existsSync(join(place.folder, ".data/postgres/postmaster.pid"))).toBe(false);
  });
});
