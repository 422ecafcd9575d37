/**
 * Reads the SQL files that migrations run. Node runs the sources directly, so the files are found
 * relative to this file, in a checkout as in an installation.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Reads one file. @param path from `src/db/`, such as `migration/0001-baseline/key.sql` */
export function readSql(path: string): string {
  return readFileSync(new URL(path, import.meta.url), "utf8");
}

/**
 * Reads the files of a folder, one SQL function each, in the order of their names. Each replaces
 * the existing function. A function with other parameters would be added to the old one, which has
 * to be dropped first.
 *
 * @param folder from `src/db/`: `sql/`, the current functions, or `migration/NNNN-<name>/`, the
 * functions that a migration changes, as they were then.
 */
export function readFunctions(folder: `${string}/`): string[] {
  return readdirSync(new URL(folder, import.meta.url))
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => readSql(`${folder}${file}`));
}
