/** Finds the agents' programs, or installs them. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Cli } from "./agent.ts";
import { execute } from "./execute.ts";

/** A usable program, or the reason why there is none. */
export type Program =
  | { readonly path: string; readonly version: string }
  | { readonly missing: string };

/**
 * Installs the known versions below a folder. Returns why, by program, if one cannot be installed.
 */
export async function install(
  clis: readonly Cli[],
  folder: string,
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>();
  // One after the other: if one cannot be had, the others still can.
  for (const { package: name, version, program } of clis) {
    const args = ["install", "--prefix", folder, "--no-audit", "--no-fund", `${name}@${version}`];
    try {
      await promisify(execFile)("npm", args, { cwd: folder });
    } catch (error) {
      refused.set(program, error instanceof Error ? error.message : String(error));
    }
  }
  return refused;
}

/** Searches for a program below a folder, and reads its version. */
export async function findProgram(cli: Cli, folder: string, scratch: string): Promise<Program> {
  const path = join(folder, "node_modules", ".bin", cli.program);
  if (!existsSync(path)) {
    const command = `npm install --prefix ${folder} ${cli.package}@${cli.version}`;
    return { missing: `${path} does not exist; ${command}` };
  }
  const home = mkdtempSync(join(scratch, "version-"));
  const room = { program: path, home, workFolder: home };
  const { code, stdout, stderr } = await execute(room, { args: ["--version"] }, "");
  const version = /\d+\.\d+\.\d+\S*/.exec(stdout)?.[0];
  if (code !== 0 || version === undefined) {
    return { missing: `${path} --version fails: ${`${stdout}${stderr}`.trim()}` };
  }
  return { path, version };
}
