import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openDatabase } from "../../../src/db/database.ts";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { scriptedServer } from "./scripted-server.ts";

let closers: (() => Promise<unknown>)[];
beforeEach(() => {
  closers = [];
});
afterEach(async () => {
  for (const close of closers.toReversed()) await close();
});

/** Closes it after the test, last opened first. */
function closing<T extends { close(): Promise<unknown> }>(resource: T): T {
  closers.push(() => resource.close());
  return resource;
}

async function open(scratch: TestDatabase, log = { info: () => {}, warn: () => {} }) {
  return closing(await openDatabase(scratch.url, { log }));
}

async function listening(server: Server, port = 0): Promise<number> {
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a TCP server
  return (server.address() as AddressInfo).port;
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listening(server);
  await closeServer(server);
  return port;
}

test("R-MON-7: the server ends a statement of a caller that is blocked for a second, and one of a job much later", async () => {
  const scratch = closing(await createTestDatabase());
  const { orm, pool, taskPool, jobPool } = await open(scratch);
  const text =
    "select current_setting('lock_timeout') as lock, current_setting('statement_timeout') as statement";
  const [ofCallers, ofJobs] = [
    { lock: "900ms", statement: "10s" },
    { lock: "5s", statement: "10min" },
  ];
  expect(await orm.em.fork().execute(text)).toEqual([ofCallers]);
  expect((await pool.query(text)).rows).toEqual([ofCallers]);
  expect((await taskPool.query(text)).rows).toEqual([ofCallers]);
  expect((await jobPool.query(text)).rows).toEqual([ofJobs]);
});

test("a database opens by its address, socket folder included", async () => {
  const scratch = closing(await createTestDatabase());
  const name = new URL(scratch.url).pathname.slice(1);
  const database = await open(scratch);
  const viaPool = await database.pool.query("select current_database()");
  const viaOrm = await database.orm.em.fork().execute("select current_database()");
  expect(viaPool.rows).toEqual([{ current_database: name }]);
  expect(viaOrm).toEqual([{ current_database: name }]);
});

test("a server that does not answer yet is waited for, with one line", async () => {
  const scratch = closing(await createTestDatabase());
  const target = new URL(scratch.url);
  const proxy = createServer((socket) => {
    const host = target.searchParams.get("host");
    const port = Number(target.port || 5432);
    const upstream = host
      ? connect({ path: `${host}/.s.PGSQL.${port}` })
      : connect({ host: target.hostname, port });
    socket.pipe(upstream).pipe(socket);
    socket.on("error", () => upstream.destroy());
    upstream.on("error", () => socket.destroy());
  });
  const port = await freePort();
  const lines: string[] = [];
  const warn = (line: string) => {
    lines.push(line);
    proxy.listen(port, "127.0.0.1");
  };
  closers.push(() => closeServer(proxy));
  const url = `postgresql://${target.username}@127.0.0.1:${port}${target.pathname}`;
  closing(await openDatabase(url, { log: { info: () => {}, warn } }));
  expect(lines).toEqual([`waiting for the database at 127.0.0.1:${port}`]);
});

test("a server that never answers is one clear error, without the password", async () => {
  const port = await freePort();
  const url = `postgresql://uas:hunter2@127.0.0.1:${port}/uas`;
  const error: unknown = await openDatabase(url, { waitMs: 0 }).catch((reason: unknown) => reason);
  expect(String(error)).toContain(`Cannot reach the database at 127.0.0.1:${port}`);
  expect(String(error)).toContain("DATABASE_URL");
  expect(String(error)).not.toContain("hunter2");
});

test("a database that does not exist is named, with what to do", async () => {
  const scratch = closing(await createTestDatabase());
  const url = new URL(scratch.url);
  url.pathname = "/uas_nowhere";
  await expect(openDatabase(url.href)).rejects.toThrow(
    /no database "uas_nowhere".*createdb uas_nowhere/,
  );
});

test("an address that is none is not repeated: it may hold a password", async () => {
  await expect(openDatabase("postgresql://uas:hunter2@[/uas")).rejects.toThrow(
    /^DATABASE_URL must be the address(?!.*hunter2)/,
  );
});

test("a wrong password and an old PostgreSQL are one clear error each", async () => {
  const refusing = closing(await scriptedServer({ error: ["28P01", "password is wrong"] }));
  await expect(openDatabase(refusing.url)).rejects.toThrow(/wrong user or password/);
  const old = closing(await scriptedServer({ row: ["140011", "14.11"] }));
  await expect(openDatabase(old.url)).rejects.toThrow(/PostgreSQL 14\.11.*version 15 or later/);
});
