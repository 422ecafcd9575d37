/** Commands beside a running gateway: they ask it, by the socket in its data folder. */
import { execFile } from "node:child_process";
import { statSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { makePlace, type Place, Process } from "./process.ts";

const run = promisify(execFile);
const bin = join(import.meta.dirname, "../../../bin/uas.js");
let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

/** A gateway on a database of the test, in a folder. */
async function start(place: Place, env: Readonly<Record<string, string>> = {}): Promise<Process> {
  const masterKey = Buffer.alloc(32, 7).toString("base64");
  const own = { DATABASE_URL: database.url, UAS_MASTER_KEY: masterKey };
  const gateway = new Process(place, { ...own, ...env });
  onTestFinished(() => gateway.kill());
  await gateway.listening();
  return gateway;
}

function openPlace(): Place {
  const place = makePlace();
  onTestFinished(() => place.close());
  return place;
}

/** Runs a command in the folder, without the gateway's environment by default. */
async function uas(
  place: Place,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Readonly<Record<string, unknown>>[]> {
  const options = { cwd: place.folder, env };
  const { stdout } = await run(process.execPath, [bin, ...args, "--json"], options);
  return JSON.parse(stdout);
}

describe("a command beside a running gateway", () => {
  it.each(["1", "2"])(
    "needs no DATABASE_URL: it asks the gateway with UAS_WORKERS=%s, also after a kill",
    async (workers) => {
      const place = openPlace();
      const env = { UAS_WORKERS: workers };
      const killed = await start(place, env);
      await killed.kill();
      const gateway = await start(place, env);
      const socket = join(place.folder, ".data/operator.sock");
      expect(statSync(socket).mode & 0o777).toBe(0o600);
      const created = await uas(place, ["account", "create", "--name", `of ${workers}`]);
      expect(created).toHaveProperty("accountId");
      const accounts = await uas(place, ["account", "list"], { DATABASE_URL: database.url });
      expect(accounts.map(({ name }) => name)).toContain(`of ${workers}`);
      expect((await gateway.stop()).code).toBe(0);
    },
  );

  it("works on its own DATABASE_URL if the gateway has another one, such as a restored copy", async () => {
    const place = openPlace();
    await start(place);
    await uas(place, ["account", "create", "--name", "in the gateway"]);
    const copy = await createTestDatabase();
    onTestFinished(() => copy.close());
    expect(await uas(place, ["account", "list"], { DATABASE_URL: copy.url })).toEqual([]);
  });
});
