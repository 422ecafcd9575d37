/**
 * Reads the SQL files that migrations run. Node runs the sources as they are, so the files are found beside this one, in
 * a checkout as in an installation.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Reads one file. @param path from `src/db/`, such as `migration/0001-baseline/key.sql` */
export function readSql(path: string): string {
  return readFileSync(new URL(path, import.meta.url), "utf8");
}

/**
 * Reads the files of a folder, one SQL function each, in the order of their names. Each replaces the function that is
 * there; one with other parameters would stay beside it, and has to be dropped first.
 *
 * @param folder from `src/db/`: `sql/`, the functions as they are now, or `migration/NNNN-<name>/`, those that a
 * migration changes, as they were then.
 */
export function readFunctions(folder: `${string}/`): string[] {
  return readdirSync(new URL(folder, import.meta.url))
    .filter((file) => file.endsWith(".sql"))
    .toSorted()
    .map((file) => readSql(`${folder}${file}`));
}
