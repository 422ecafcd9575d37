/** The bench's processes: each on a core of its own where the machine lets us, asked over IPC. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

/** Which half of the machine a process runs on. */
export type Core = "contestant" | "load" | "both";

/** A process of the bench. */
export interface Child {
  readonly pid: number;
  /** Calls a handler in the process and resolves with what it returns. */
  ask<Answer>(name: string, argument?: unknown): Promise<Answer>;
  /** Ends it with SIGTERM, after ten seconds with SIGKILL, and waits until it is gone. */
  stop(): Promise<void>;
}

/** How to start a process. */
export interface ChildOptions {
  /** The script and its arguments; a relative script is one of this folder. */
  readonly command: readonly string[];
  readonly core: Core;
  readonly env?: Readonly<Record<string, string>>;
  /** Where standard output and error go: a file descriptor. Default: this process's standard error. */
  readonly output?: number;
}

/** Whether processes are bound to cores: where they can be, unless `UAS_BENCH_CORES=any`. */
export const isPinned: boolean =
  process.env["UAS_BENCH_CORES"] !== "any" &&
  availableParallelism() >= 2 &&
  spawnSync("taskset", ["-c", "0", "true"]).status === 0;

/** Starts a process of the bench. */
export function start({ command, core, env = {}, output }: ChildOptions): Child {
  const [script = "", ...rest] = command;
  const path = fileURLToPath(new URL(script, import.meta.url));
  const hook = fileURLToPath(new URL("answer.ts", import.meta.url));
  const cache = fileURLToPath(new URL("../bin/compile-cache.js", import.meta.url));
  const node = [process.execPath, "--import", cache, "--import", hook, path, ...rest];
  const [file = "", ...args] = isPinned ? ["taskset", "-c", cores[core], ...node] : node;
  const child = spawn(file, args, {
    env: { ...process.env, ...env, UAS_BENCH_PID: String(process.pid) },
    stdio: ["ignore", output ?? 2, output ?? 2, "ipc"],
  });
  return new IpcChild(child);
}

const cores: Readonly<Record<Core, string>> = { contestant: "0", load: "1", both: "0,1" };

interface Answer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
}

interface Waiter {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

class IpcChild implements Child {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #waiting = new Map<number, Waiter>();
  #ids = 0;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.pid = child.pid ?? 0;
    this.#exited = new Promise((resolve) => {
      child.once("exit", (code, signal) => {
        for (const { reject } of this.#waiting.values()) {
          reject(new Error(`${child.spawnargs.at(-1)} ended (${code ?? signal})`));
        }
        resolve();
      });
    });
    child.on("message", (message) => this.#onAnswer(message as Answer));
  }

  ask<Answered>(name: string, argument?: unknown): Promise<Answered> {
    const id = ++this.#ids;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#child.send({ id, name, argument }, (error) => error && reject(error));
    });
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    await this.#exited;
    clearTimeout(timer);
  }

  #onAnswer({ id, value, error }: Answer): void {
    const waiter = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error === undefined) waiter?.resolve(value as never);
    else waiter?.reject(new Error(error));
  }
}
