/** An installation with `npm ci --omit=dev` that nobody has built the console's pages for. */
import { cpSync, mkdirSync, readdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { makePlace, type Place, Process } from "./process.ts";

const project = join(import.meta.dirname, "../..");

let place: Place;
let database: TestDatabase;
let gateway: Process;

beforeAll(async () => {
  place = makePlace();
  database = await createTestDatabase();
  for (const name of ["bin", "gen", "src", "package.json", "package-lock.json"]) {
    cpSync(join(project, name), join(place.folder, name), { recursive: true });
  }
  const packages = join(place.folder, "node_modules");
  mkdirSync(packages);
  for (const name of readdirSync(join(project, "node_modules"))) {
    if (!["vite", ".cache"].includes(name))
      symlinkSync(join(project, "node_modules", name), join(packages, name));
  }
  const program = join(place.folder, "bin/uas.js");
  gateway = new Process(place, { DATABASE_URL: database.url }, program);
}, 60_000);

afterAll(async () => {
  await gateway?.kill();
  await database?.close();
  place?.close();
});

it("says in one line what to do, and prints no link that leads nowhere", async () => {
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
