/** Processes of the bench, each on its core if the machine has two. */
import { type ChildProcess, spawn, spawnSync, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

/** Contestants share core 0, vendors and load generators core 1. */
export type Core = "contestant" | "load";

/** Whether processes are bound to cores. `UAS_BENCH_CORES=any` prevents it. */
export const isPinned: boolean =
  process.env["UAS_BENCH_CORES"] !== "any" &&
  availableParallelism() >= 2 &&
  spawnSync("taskset", ["-c", "0", "true"]).status === 0;

/** Options of a process. */
export interface StartOptions {
  readonly core: Core;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdio?: StdioOptions;
}

/** Starts a program. Without `stdio`, its output is this process's standard error. */
export function start(
  command: readonly string[],
  { core, env, stdio = ["ignore", 2, 2] }: StartOptions,
): ChildProcess {
  const binding = isPinned ? ["taskset", "-c", core === "contestant" ? "0" : "1"] : [];
  const [file = "", ...args] = [...binding, ...command];
  return spawn(file, args, { env: { ...process.env, ...env }, stdio });
}

/** Starts a script of this folder, which answers with `process.send`. */
export function startScript(name: string, args: readonly string[], core: Core): ChildProcess {
  const cache = fileURLToPath(new URL("../bin/compile-cache.js", import.meta.url));
  const script = fileURLToPath(new URL(name, import.meta.url));
  const command = [process.execPath, "--import", cache, script, ...args];
  return start(command, { core, stdio: ["ignore", 2, 2, "ipc"] });
}

/** The next message of a script. @throws Error if it ends before */
export async function nextMessage<Message>(child: ChildProcess): Promise<Message> {
  const listening = new AbortController();
  const { signal } = listening;
  try {
    const ended = once(child, "exit", { signal }).then(() => {
      throw new Error(`${child.spawnargs.join(" ").slice(0, 200)} ended`);
    });
    const [message] = await Promise.race([once(child, "message", { signal }), ended]);
    return message as Message;
  } finally {
    listening.abort();
  }
}

/** Ends a process with SIGTERM, after ten seconds with SIGKILL, and waits for its end. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await exited;
  clearTimeout(timer);
}
