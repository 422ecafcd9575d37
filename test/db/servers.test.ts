/** Several hosts in one address: connections go to the primary, and follow it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { openPool } from "../../src/db/pool/open-pool.ts";
import { Servers } from "../../src/db/pool/servers.ts";
import { createTestDatabase } from "../support/database.ts";
import { type Replicated, startReplicated } from "../support/replicated.ts";

let folder: string;
let replicated: Replicated;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "uas-servers-"));
  replicated = await startReplicated(folder, { isFast: true });
});
afterAll(async () => {
  await replicated?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The standby first. */
function reversed(url: string): string {
  return url.replace(/@([^,/]+),([^/]+)/, "@$2,$1");
}

async function connectTo(servers: Servers): Promise<Client> {
  const client = servers.createClient({ connectLimitMs: 5_000 });
  onTestFinished(() => client.end());
  await client.connect();
  return client;
}

test.each([["first"], ["last"]])(
  "a connection goes to the primary where it is the %s host",
  async (place) => {
    const { url, primary } = replicated;
    const client = await connectTo(new Servers(place === "first" ? url : reversed(url)));
    expect((await client.query("show port")).rows).toEqual([{ port: String(primary.port) }]);
  },
);

test("a server that refuses a write as read-only is asked no more on that connection (25006)", async () => {
  const scratch = await createTestDatabase();
  onTestFinished(() => scratch.close());
  const pool = openPool(scratch.url, { max: 1, for: "callers" });
  onTestFinished(() => pool.end());
  const client = await pool.connect();
  const before = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  await client.query("set default_transaction_read_only = on");
  const refused = client.query("create table t ()");
  await expect(refused).rejects.toMatchObject({ code: "25006" });
  // As a library does that keeps its connection.
  client.release();
  const after = await pool.query<{ pid: number }>("select pg_backend_pid() as pid");
  expect(after.rows).not.toEqual(before.rows);
  await pool.query("create table t ()");
});

test("R-MON-7: a connection to a primary that hangs fails within its limit, also where the driver has none", async () => {
  const { url, primary } = replicated;
  const servers = new Servers(url);
  await connectTo(servers);
  const client = new Client({ connectionString: servers.url });
  client.on("error", () => {});
  primary.freeze();
  onTestFinished(() => primary.thaw());
  const connecting = servers.connect(client, 300, () => client.connect());
  await expect(connecting).rejects.toThrow("timeout: the server at");
});

test("after a failover, connections to the old primary end, and others find the new one, also where the old one answers again", async () => {
  const { url, primary, standby } = replicated;
  const servers = new Servers(url);
  const pool = openPool(servers, { max: 2, for: "callers" });
  onTestFinished(() => pool.end());
  const client = await connectTo(servers);
  const ended = new Promise<void>((resolve) => client.once("end", resolve));
  const port = async (): Promise<unknown> => (await pool.query("show port")).rows[0];
  expect(await port()).toEqual({ port: String(primary.port) });

  // It keeps its connections, and says nothing more.
  primary.freeze();
  await expect(port()).rejects.toThrow();
  await standby.promote();
  await expect
    .poll(() => port().catch(() => undefined))
    .toEqual({
      port: String(standby.port),
    });
  await ended;

  // The old one takes itself for the primary, and cannot be replicated any more.
  primary.thaw();
  await primary.until("select 1 where not pg_is_in_recovery()");
  const others = [new Servers(url), new Servers(reversed(url)), servers];
  const ports = others.map(async (each) => (await (await connectTo(each)).query("show port")).rows);
  expect(new Set((await Promise.all(ports)).map((rows) => JSON.stringify(rows)))).toEqual(
    new Set([JSON.stringify([{ port: String(standby.port) }])]),
  );

  // The new one is gone: the old one is none.
  await standby.kill();
  await expect(connectTo(servers)).rejects.toThrow(/before a failover|terminated|ECONNRE/);
  await expect(connectTo(servers)).rejects.toThrow(/was the primary before a failover/);
});

test("without a primary, the error names the servers and no password", async () => {
  await replicated.primary.kill();
  const error: unknown = await connectTo(new Servers(replicated.url)).catch(
    (cause: unknown) => cause,
  );
  expect(String(error)).toMatch(
    /no server of the database accepts writes: 127\.0\.0\.1:\d+ \(.*\), 127\.0\.0\.1:\d+ \(.*\)/,
  );
  expect(String(error)).not.toContain("replicated");
});
