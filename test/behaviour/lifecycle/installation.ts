/** Installations with fewer packages than this one has. */
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { makePlace, type Place } from "./process.ts";

const project = join(import.meta.dirname, "../../..");

/** A package of package-lock.json. */
export interface LockedPackage {
  readonly name: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly devOptional?: boolean;
}

/** Copies the program, with only these of its packages. */
export function install(isInstalled: (locked: LockedPackage) => boolean): Place & { bin: string } {
  const place = makePlace();
  for (const name of ["bin", "console", "gen", "src", "package.json", "package-lock.json"]) {
    cpSync(join(project, name), join(place.folder, name), { recursive: true });
  }
  for (const locked of lockedPackages().filter(isInstalled)) {
    // Of other platforms.
    if (!existsSync(join(project, "node_modules", locked.name))) continue;
    const link = join(place.folder, "node_modules", locked.name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(project, "node_modules", locked.name), link);
  }
  return { ...place, bin: join(place.folder, "bin/uas.js") };
}

/** Packages that are not nested in others. */
function lockedPackages(): LockedPackage[] {
  const lock = JSON.parse(readFileSync(join(project, "package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, Omit<LockedPackage, "name">>>;
  };
  const start = "node_modules/";
  return Object.entries(lock.packages)
    .filter(([path]) => path.startsWith(start) && path.lastIndexOf(start) === 0)
    .map(([path, locked]) => ({ ...locked, name: path.slice(start.length) }));
}
