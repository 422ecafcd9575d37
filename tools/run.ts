/** Runs a program of node_modules/.bin. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { delimiter, join } from "node:path";

const root = join(import.meta.dirname, "..");
const binaries = join(root, "node_modules", ".bin");

/** The long checks are Go programs. So they take a sixth less CPU, and as much memory at most. */
const collectRarely = { GOGC: "400" };

/**
 * Runs a program in the project's folder; its output is shown where it fails, or at once if it is
 * `vitest`, whose progress is worth seeing.
 *
 * The project's own programs, its Node.js among them, come first on the path, as under npm.
 *
 * @returns its exit code; 1 where a signal ended it.
 */
export async function run(program: string, args: readonly string[]): Promise<number> {
  const shown = program === "vitest";
  const child = spawn(join(binaries, program), args, {
    cwd: root,
    env: {
      ...collectRarely,
      ...process.env,
      PATH: `${binaries}${delimiter}${process.env["PATH"]}`,
    },
    stdio: ["ignore", shown ? "inherit" : "pipe", shown ? "inherit" : "pipe"],
    // npm's programs are scripts there.
    shell: process.platform === "win32",
  });
  const output: Buffer[] = [];
  child.stdout?.on("data", (chunk: Buffer) => output.push(chunk));
  child.stderr?.on("data", (chunk: Buffer) => output.push(chunk));
  const [code]: unknown[] = await once(child, "close");
  if (code !== 0) process.stdout.write(Buffer.concat(output));
  return typeof code === "number" ? code : 1;
}
