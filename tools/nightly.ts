/**
 * Runs `npm run nightly`: the tests of `test/nightly`, which run each rig in its short form, then
 * each rig in its long form, one after the other. It takes hours. A failing rig does not stop the
 * others; the last lines list the results.
 *
 * `-- --only chaos,fuzz` runs only these.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { run } from "./run.ts";

/** The scripts of package.json, with their arguments. */
const rigs: readonly (readonly [script: string, ...args: string[]])[] = [
  ["chaos", "--allow-missing"],
  ["ha"],
  ["fuzz", "--requests", "20000"],
  ["fuzz", "--faults"],
  ["fuzz", "--quirks"],
  ["soak"],
  ["interop"],
  ["agents", "--install"],
  ["bench"],
];

const root = join(import.meta.dirname, "..");

/** Runs a script of package.json. @returns its exit code; 1 if a signal ended it */
async function runScript(script: string, args: readonly string[]): Promise<number> {
  const child = spawn("npm", ["run", script, "--", ...args], { cwd: root, stdio: "inherit" });
  const [code]: unknown[] = await once(child, "close");
  return typeof code === "number" ? code : 1;
}

/** The rigs that the command line names. Default: all. */
function chosen(args: readonly string[]): typeof rigs {
  const at = args.indexOf("--only");
  if (at === -1) return rigs;
  const names = new Set((args[at + 1] ?? "").split(","));
  const unknown = [...names].filter((name) => !rigs.some(([script]) => script === name));
  if (unknown.length > 0) {
    const known = [...new Set(rigs.map(([script]) => script))].join(", ");
    throw new Error(`unknown rig ${unknown.join(", ")}; the rigs are ${known}`);
  }
  return rigs.filter(([script]) => names.has(script));
}

const lines: string[] = [];
let failed = 0;

/** Runs one rig, and keeps the line that says how it ended. */
async function note(name: string, running: () => Promise<number>): Promise<void> {
  const start = performance.now();
  const code = await running();
  if (code !== 0) failed += 1;
  const minutes = ((performance.now() - start) / 60_000).toFixed(1);
  lines.push(`${code === 0 ? "ok  " : "FAIL"} ${name} (${minutes} min)`);
}

const wanted = chosen(process.argv.slice(2));
if (wanted === rigs) {
  await note("test/nightly", () => run("vitest", ["run", "--project=nightly"]));
}
for (const [script, ...args] of wanted) {
  await note([script, ...args].join(" "), () => runScript(script, args));
}
process.stdout.write(`${lines.join("\n")}\n${lines.length - failed} passed, ${failed} failed\n`);
process.exitCode = failed > 0 ? 1 : 0;
