/** Runs a program to its end. */
import { spawn } from "node:child_process";
import { once } from "node:events";

/** Output of a program. */
export interface Run {
  readonly code: number | null;
  readonly output: string;
}

/** Variables of a program, added to those of this process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where and with which variables a program runs. */
export interface RunOptions {
  readonly cwd: string;
  readonly env?: Environment;
}

/**
 * Runs a program. @returns its exit code, null if it did not start, and everything that it printed
 */
export async function runProgram(
  program: string,
  args: readonly string[],
  { cwd, env }: RunOptions,
): Promise<Run> {
  const child = spawn(program, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (piece: string) => (output += piece));
  child.stderr.setEncoding("utf8").on("data", (piece: string) => (output += piece));
  const [code] = (await once(child, "close").catch((error: Error) => {
    output += error.message;
    return [null];
  })) as [number | null];
  return { code, output };
}
