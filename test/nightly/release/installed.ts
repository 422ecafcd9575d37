/** Packages of the gateway, installed with npm as a customer would. */
import { execFile } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import type { Place } from "../../behaviour/lifecycle/process.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");
const releases = join(root, "test/releases");

/** Packs this checkout into a folder. @returns the path of the package */
export async function packCheckout(folder: string): Promise<string> {
  mkdirSync(folder, { recursive: true });
  const args = ["pack", "--silent", "--pack-destination", folder];
  const { stdout } = await run("npm", args, { cwd: root });
  return join(folder, basename(stdout.trim().split("\n").at(-1) ?? ""));
}

/** The newest released package; undefined before the first release. */
export function newestRelease(): string | undefined {
  const packages = readdirSync(releases).filter((file) => file.endsWith(".tgz"));
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const newest = packages.toSorted(compare).at(-1);
  return newest === undefined ? undefined : join(releases, newest);
}

/** An installed package. */
export interface Installed {
  /** Its folder, which has `node_modules`. */
  readonly folder: string;
  /** The program that the package's command starts. */
  readonly program: string;
}

/** Installs a package into a new folder, with what npm downloads. */
export async function install(packed: string, folder: string): Promise<Installed> {
  mkdirSync(folder, { recursive: true });
  const args = ["install", "--prefix", folder, "--no-audit", "--no-fund", packed];
  await run("npm", args, { cwd: folder });
  return { folder, program: join(folder, "node_modules/.bin/uas") };
}

/** Runs a command of an installed package. @returns its standard output. @throws if it fails */
export async function uas(
  { program }: Installed,
  { place, env }: { readonly place: Place; readonly env: Readonly<Record<string, string>> },
  ...args: readonly string[]
): Promise<string> {
  const options = { cwd: place.folder, env: { PATH: process.env["PATH"], ...env } };
  return (await run(program, args, options)).stdout;
}
