/** An installation with `npm ci --omit=dev` without built console pages. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { install } from "./installation.ts";
import { Process } from "./process.ts";

let place: ReturnType<typeof install>;
let database: TestDatabase;
let gateway: Process;

beforeAll(async () => {
  place = install(({ name }) => name !== "vite");
  database = await createTestDatabase();
  gateway = new Process(place, { DATABASE_URL: database.url }, [process.execPath, place.bin]);
}, 60_000);

afterAll(async () => {
  await gateway?.kill();
  await database?.close();
  place?.close();
});

it("a start without the console's builder says in one line what to do, and prints no link that leads nowhere", async () => {
  const { url } = await gateway.listening();
  const lines = gateway.out.split("\n").filter((line) => line.includes("the console has no pages"));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    level: 40,
    msg: expect.stringContaining("npm ci && npm run console"),
  });
  expect(gateway.out + gateway.err).not.toMatch(/Cannot find module|"level":50|console\/welcome/);
  expect(gateway.out).toMatch(/Console +has no pages yet: .*npm ci && npm run console/);
  expect(gateway.out).toMatch(/API key +uas_/);
  expect((await fetch(`${url}/console`)).status).toBe(503);
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
});
