/** Processes that tests start, and that end themselves at a point. */
import { flushCompileCache } from "node:module";
import { join } from "node:path";

/**
 * Variables of a process that loads the program: it uses again what others have compiled, which is
 * half of its start.
 */
export const compiledEnv = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, "../../node_modules/.cache/uas-gateway"),
};

/** Environment of `npm start`. */
export const startVariables = {
  MALLOC_ARENA_MAX: "2",
  MALLOC_MMAP_THRESHOLD_: "1048576",
  MALLOC_TRIM_THRESHOLD_: "4194304",
  NODE_OPTIONS: "--max-semi-space-size=16",
};

/**
 * Kills this process. What it has compiled is kept first: otherwise only processes that end in
 * order keep it.
 */
export function killSelf(): void {
  flushCompileCache();
  process.kill(process.pid, "SIGKILL");
}
