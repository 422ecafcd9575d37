/** Commands beside a running gateway: they ask it, by the socket in its data folder. */
import { execFile } from "node:child_process";
import { statSync, writeFileSync } from "node:fs";
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
      const { url } = await gateway.listening();
      const link = await uas(place, ["console", "link"]);
      expect(link).toMatchObject({ url: expect.stringContaining(`${url}/console/welcome#`) });
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

  it("shows what is in force apart from a file that the gateway has not loaded", async () => {
    const place = openPlace();
    const yaml = (price: string, more = "") =>
      `version: 1\nvendors: { demo: { kind: demo } }\nmodels:\n  m: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 9, price: { input: "${price}", output: "1" } }\n${more}`;
    writeFileSync(join(place.folder, "loaded.yaml"), yaml("1"));
    const other =
      '  n: { type: TEXT, routes: [{ vendor: demo, model: chat }], max_output_tokens: 9, price: { input: "3", output: "3" } }\n';
    writeFileSync(join(place.folder, "edited.yaml"), yaml("2", other));
    await start(place, { UAS_CONFIG: "loaded.yaml" });
    const env = { UAS_CONFIG: "edited.yaml" };
    const inForce = { price: { input: "1", output: "1" } };
    const written = { price: { input: "2", output: "1" } };
    expect(await uas(place, ["models", "list"], env)).toMatchObject([
      { modelKey: "m", ...inForce, state: "not_in_the_file" },
      { modelKey: "m", ...written, state: "not_in_force" },
      { modelKey: "n", state: "not_in_force" },
    ]);
    expect(await uas(place, ["price", "show", "m"], env)).toMatchObject({
      versions: [{ state: "current", price: { units: inForce.price } }],
      notInForce: [{ from: null, price: { units: written.price } }],
    });
    const loaded = { UAS_CONFIG: "loaded.yaml" };
    expect(await uas(place, ["models", "list"], loaded)).toMatchObject([{ state: "in_force" }]);
    expect(await uas(place, ["price", "show", "m"], loaded)).toMatchObject({ notInForce: [] });
  });

  it("reaches a gateway elsewhere by --gateway and its token", async () => {
    const place = openPlace();
    const gateway = await start(place, { UAS_OPERATOR_TOKEN: "operator-canary-77aa" });
    const { internalUrl } = await gateway.listening();
    const elsewhere = openPlace();
    const line = ["models", "list", "--gateway", internalUrl];
    const env = { UAS_OPERATOR_TOKEN: "operator-canary-77aa" };
    const models = await uas(elsewhere, line, env);
    expect(models.map(({ modelKey }) => modelKey)).toContain("demo-chat");
    await expect(uas(elsewhere, line)).rejects.toThrow("UAS_OPERATOR_TOKEN");
    await expect(uas(elsewhere, line, { UAS_OPERATOR_TOKEN: "wrong" })).rejects.toThrow();
  });
});
