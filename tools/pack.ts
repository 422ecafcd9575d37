/**
 * The first step of `npm pack`: compiles the program into `dist/src` and `dist/gen`, and copies its
 * SQL files and the built pages of the console beside it. `files` in package.json lists what is
 * packed.
 */
import { cpSync, globSync, rmSync } from "node:fs";
import { join } from "node:path";
import { buildPages } from "../src/app/built-pages.ts";
import { run } from "./run.ts";

const root = join(import.meta.dirname, "..");
const dist = join(root, "dist");

for (const folder of ["src", "gen", "pages"]) {
  rmSync(join(dist, folder), { recursive: true, force: true });
}
if ((await run("tsc", ["-p", "tools/pack"])) !== 0) throw new Error("the program was not compiled");
for (const file of globSync("src/**/*.sql", { cwd: root }))
  cpSync(join(root, file), join(dist, file));
cpSync(await buildPages(), join(dist, "pages"), { recursive: true });
