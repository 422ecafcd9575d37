/** Compares two folders byte by byte. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

/** The paths below `left` and `right` whose files differ, or that only one of them has, sorted. */
export function compareFolders(left: string, right: string): string[] {
  const ours = files(left);
  const theirs = files(right);
  const all = [...new Set([...ours, ...theirs])].toSorted();
  return all.filter(
    (file) =>
      !ours.includes(file) ||
      !theirs.includes(file) ||
      !readFileSync(join(left, file)).equals(readFileSync(join(right, file))),
  );
}

function files(folder: string): string[] {
  const found = readdirSync(folder, { recursive: true, encoding: "utf8" });
  return found.filter((path) => statSync(join(folder, path)).isFile());
}
