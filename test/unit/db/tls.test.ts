/**
 * Requirements of managed PostgreSQL services: TLS with a private certificate authority, and a
 * verified name.
 */
import * as fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../src/db/database.ts";
import { startEmbedded } from "../../../src/db/embedded/embedded.ts";

const tls = join(import.meta.dirname, "../../support/tls");

test("sslmode=verify-full with the service's authority opens an encrypted database, and an unknown authority is refused", async () => {
  const dataDir = fs.mkdtempSync(join(tmpdir(), "uas-tls-"));
  onTestFinished(() => fs.rmSync(dataDir, { recursive: true, force: true }));
  const log = { info: () => {}, warn: () => {} };
  const embedded = await startEmbedded({ dataDir, log, testing: true, loopback: true });
  onTestFinished(() => embedded.stop());
  await turnOnTls(embedded.url, dataDir);

  const url = new URL(embedded.url);
  url.hostname = "localhost";
  url.searchParams.set("sslmode", "verify-full");
  await expect(openDatabase(url.href)).rejects.toThrow(/certificate|self.signed/i);

  url.searchParams.set("sslrootcert", join(tls, "ca.pem"));
  const database = await openDatabase(url.href);
  onTestFinished(() => database.close());
  const text = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
  expect((await database.pool.query(text)).rows).toEqual([{ ssl: true }]);
  expect(await database.orm.em.fork().execute(text)).toEqual([{ ssl: true }]);
});

async function turnOnTls(url: string, dataDir: string): Promise<void> {
  const folder = join(dataDir, "postgres");
  for (const name of ["server.pem", "server-key.pem"]) {
    fs.copyFileSync(join(tls, name), join(folder, name));
    fs.chmodSync(join(folder, name), 0o600);
    const { uid, gid } = fs.statSync(folder);
    fs.chownSync(join(folder, name), uid, gid);
  }
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("alter system set ssl_cert_file = 'server.pem'");
  await client.query("alter system set ssl_key_file = 'server-key.pem'");
  await client.query("alter system set ssl = on");
  await client.query("select pg_reload_conf()");
  await expect.poll(async () => (await client.query("show ssl")).rows).toEqual([{ ssl: "on" }]);
  await client.end();
}
