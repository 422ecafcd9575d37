/** Two processes at one port: a new one listens before the old one ends (`UAS_REUSE_PORT`). */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { send } from "../support/raw-http.ts";
import { until } from "./process.ts";
import { gated, openServed, type Served, stream } from "./served.ts";

let served: Served;
beforeAll(async () => {
  served = await openServed();
});
afterAll(() => served?.close());

const masterKey = randomBytes(32).toString("base64");

/** Starts a process with a data folder of its own. */
function start(name: string, more: Readonly<Record<string, string>> = {}) {
  return served.start({
    ...{ UAS_REUSE_PORT: "on", UAS_MASTER_KEY: masterKey, UAS_DATA_DIR: name },
    UAS_DRAIN_DELAY: "1s",
    ...more,
  });
}

/** Without `net.ipv4.tcp_migrate_req`, Linux may reset a connection at the instant at which its listener closes. */
async function sent<Reply>(request: () => Promise<Reply>): Promise<Reply> {
  return request().catch((error: unknown) => {
    if (error instanceof Error && "code" in error && error.code === "ECONNRESET") return request();
    throw error;
  });
}

// Other systems do not share ports.
describe.runIf(process.platform === "linux")("a new process at the port of an old one", () => {
  it("takes over without a failed request or a lost stream, and each call is charged once (R-OPS-2)", async () => {
    const { key } = await served.customer();
    const old = await start("old");
    const { url, internalUrl } = old;
    const gate = gated();
    served.upstream.script(gate.behaviour);
    const running = stream(url, key, "across");
    await gate.begun;

    const { host } = new URL(url);
    const successor = await start("new", {
      UAS_LISTEN: host,
      UAS_INTERNAL_LISTEN: new URL(internalUrl).host,
    });
    expect([successor.url, successor.internalUrl]).toEqual([url, internalUrl]);

    const over = new AbortController();
    const statuses: number[] = [];
    const call = async (): Promise<void> => {
      while (!over.signal.aborted) {
        const { status, isCut } = await sent(() => stream(url, key, "handed-over"));
        const page = await sent(() => send(`${internalUrl}/healthz`, { method: "GET" }));
        statuses.push(isCut ? 0 : status, page.status);
      }
    };
    const callers = Promise.all([call(), call()]);
    const replies = async (count: number): Promise<void> => {
      const wanted = statuses.length + count;
      const more = until("more replies", () => (statuses.length >= wanted ? true : undefined));
      // A caller ends early only where it fails.
      await Promise.race([more, callers]);
    };
    await replies(20);
    old.signal("SIGTERM");
    await old.logged("draining");
    // The old process is open for its stream only: all of these are the new one's.
    await replies(20);
    gate.finish();
    const across = await running;
    expect([across.status, across.isCut]).toEqual([200, false]);
    expect(across.body.toString()).toContain("data: [DONE]");
    expect((await old.ended).code).toBe(0);
    await replies(20);
    over.abort();
    await callers;

    expect(statuses.filter((status) => status !== 200)).toEqual([]);
    const { rows } = await served.pool.query<{ charged: number }>(
      "select count(*)::int as charged from call where request_id = 'handed-over' and charged",
    );
    expect(rows[0]?.charged).toBe(statuses.length / 2);
    expect((await successor.stop()).code).toBe(0);
    expect(await served.audit()).toEqual([]);
  }, 180_000);

  it("is refused where either of them does not share its port", async () => {
    const alone = await start("alone", { UAS_REUSE_PORT: "off" });
    const { host } = new URL(alone.url);
    await expect(start("second", { UAS_LISTEN: host })).rejects.toThrow(
      "the port is taken by another program",
    );
    await alone.stop();
  }, 180_000);
});
