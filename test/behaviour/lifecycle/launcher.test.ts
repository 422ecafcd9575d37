/** The launcher `./uas`: signals reach the gateway, from any folder and as process 1. */
import { execFile, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createTestDatabase, type TestDatabase } from "../../support/database.ts";
import { makePlace, type Place, Process } from "./process.ts";

const run = promisify(execFile);
const launcher = join(import.meta.dirname, "../../../uas");
const place = makePlace();
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(async () => {
  await database?.close();
  place.close();
});

/** Starts a gateway. It has no HOME. */
function start(...program: readonly [string, ...string[]]): Process {
  const gateway = new Process(place, { DATABASE_URL: database.url }, program);
  onTestFinished(() => gateway.kill());
  return gateway;
}

/** Programs that give their child a process namespace, with and without root's rights. */
const namespaces = [
  ["--fork", "--pid"],
  ["--user", "--map-root-user", "--fork", "--pid"],
];
const namespace = namespaces.find((args) => spawnSync("unshare", [...args, "true"]).status === 0);

describe("./uas serve", () => {
  it.each(["SIGTERM", "SIGINT"] as const)(
    "%s reaches the gateway, which drains and exits with code 0 (R-OPS-2)",
    async (signal) => {
      const gateway = start(launcher);
      await gateway.listening();
      gateway.signal(signal);
      const { code, out } = await gateway.ended;
      expect(code).toBe(0);
      expect(out).toContain('"msg":"stopped"');
    },
  );

  it.runIf(namespace !== undefined)(
    "as process 1 of a container, SIGTERM drains the gateway",
    async () => {
      const gateway = start("unshare", ...(namespace ?? []), launcher);
      await gateway.listening();
      const [first = ""] = readFileSync(
        `/proc/${gateway.pid}/task/${gateway.pid}/children`,
        "utf8",
      ).split(" ");
      process.kill(Number(first), "SIGTERM");
      const { code, out } = await gateway.ended;
      expect(code).toBe(0);
      expect(out).toContain('"msg":"stopped"');
    },
  );

  it("serves with the variables of --env-file, also in its workers", async () => {
    const file = join(place.folder, "env");
    const yaml = `version: 1
vendors: { acme: { kind: openai, base_url: "http://127.0.0.1:1/v1", api_key: "\${env:ACME_KEY}" } }
models:
  m: { type: TEXT, routes: [{ vendor: acme, model: m }], max_output_tokens: 9, price: { input: "1", output: "1" } }
`;
    writeFileSync(join(place.folder, "own.yaml"), yaml);
    writeFileSync(file, "ACME_KEY='secret-of-acme'\nUAS_WORKERS=2\nUAS_CONFIG=own.yaml\n");
    const gateway = start(launcher, "--env-file", file);
    await gateway.listening();
    expect(await gateway.logged("listening")).toMatchObject({ workers: 2, config: "own.yaml" });
    expect((await gateway.stop()).code).toBe(0);
  });

  it("sets the memory settings of a gateway, unless they are set", async () => {
    const folder = fakeCheckout();
    const env = { PATH: "/usr/bin:/bin", MALLOC_ARENA_MAX: "7", NODE_OPTIONS: "--own" };
    const { stdout } = await run(join(folder, "uas"), ["serve"], { env });
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([
        "MALLOC_ARENA_MAX=7",
        "MALLOC_MMAP_THRESHOLD_=1048576",
        "MALLOC_TRIM_THRESHOLD_=4194304",
        "NODE_OPTIONS=--max-semi-space-size=16 --own",
      ]),
    );
    const other = await run(join(folder, "uas"), ["key", "list"], { env });
    expect(other.stdout).not.toContain("MALLOC_MMAP_THRESHOLD_");
  });
});

describe("./uas", () => {
  it("runs from any folder, through links and without an environment", async () => {
    const bin = join(place.folder, "bin");
    mkdirSync(bin);
    symlinkSync(launcher, join(bin, "first"));
    symlinkSync("first", join(bin, "uas"));
    const { stdout } = await run("bin/uas", ["--version"], { cwd: place.folder, env: {} });
    expect(stdout).toMatch(/^\d+\.\d+\.\d+(-dev)?\n$/);
  });

  it("says in one sentence that the packages are not installed", async () => {
    const folder = fakeCheckout({ hasPackages: false });
    const refused: unknown = await run(join(folder, "uas"), ["--help"]).catch((error) => error);
    expect(refused).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `uas: the packages are not installed: run \`npm ci\` in ${folder}\n`,
    });
  });
});

/** A checkout whose Node.js prints its environment instead of running the program. */
function fakeCheckout({ hasPackages = true } = {}): string {
  const made: Place = makePlace();
  onTestFinished(() => made.close());
  copyFileSync(launcher, join(made.folder, "uas"));
  mkdirSync(join(made.folder, "src"));
  if (hasPackages) {
    mkdirSync(join(made.folder, "node_modules/commander"), { recursive: true });
    mkdirSync(join(made.folder, "node_modules/.bin"));
    const node = join(made.folder, "node_modules/.bin/node");
    writeFileSync(node, "#!/bin/sh\nexec env\n", { mode: 0o755 });
  }
  return made.folder;
}
