/** Node.js caches the compiled sources for the next start, if possible. */
import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, it } from "vitest";

const run = promisify(execFile);
const script = join(import.meta.dirname, "../../../bin/compile-cache.js");

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "uas-compile-"));
  mkdirSync(join(folder, "bin"));
  cpSync(script, join(folder, "bin/compile-cache.js"));
  writeFileSync(join(folder, "main.ts"), "const word: string = 'started';\nconsole.log(word);\n");
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Starts a program there. @returns what it printed */
async function start(env: Readonly<Record<string, string>> = {}): Promise<string> {
  const args = ["--import", join(folder, "bin/compile-cache.js"), join(folder, "main.ts")];
  const { stdout, stderr } = await run(process.execPath, args, { env: { ...process.env, ...env } });
  return stdout + stderr;
}

it("the second start takes no types out of sources any more", async () => {
  expect(await start()).toBe("started\n");
  const [version = ""] = readdirSync(join(folder, "node_modules/.cache/uas-gateway"));
  expect(version).toContain(process.version);
  const told = await start({ NODE_DEBUG_NATIVE: "COMPILE_CACHE" });
  expect(told).toMatch(
    /retrieving transpile cache for StrippedTypeScript \S+main\.ts\.\.\.success/,
  );
});

it("a source that has changed is read anew", async () => {
  await start();
  writeFileSync(join(folder, "main.ts"), "const word: string = 'changed';\nconsole.log(word);\n");
  expect(await start()).toBe("changed\n");
});

it("a folder that cannot be written is nothing to speak of", async () => {
  writeFileSync(join(folder, "node_modules"), "");
  expect(await start()).toBe("started\n");
});
