/** Processes of the harness, as their parent sees them. */
import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { compiledEnv } from "../../support/child.ts";
import { type Plan, planVariable, readyWord } from "./plan.ts";

/** The program of a process. */
export type Program = "ledger-child" | "gateway-child";

/** Maximum time for a process to start on a busy machine. */
const startMs = 180_000;

/** A process that runs, or has. */
export class Child {
  /** Resolves to whether it ended by itself and in good order. */
  readonly ended: Promise<boolean>;
  readonly #child: ChildProcess;
  #out = "";

  private constructor(program: Program, plan: Plan) {
    this.#child = spawn(process.execPath, [join(import.meta.dirname, `${program}.ts`)], {
      env: {
        PATH: process.env["PATH"],
        ...compiledEnv,
        [planVariable]: JSON.stringify(plan),
      },
      stdio: ["pipe", "pipe", "inherit"],
    });
    this.#child.stdout?.on("data", (piece: Buffer) => (this.#out += piece.toString()));
    // The end of its input is the only sign that this process ended.
    this.#child.stdin?.on("error", () => {});
    this.ended = new Promise((resolve) => {
      this.#child.once("close", (code) => resolve(code === 0));
    });
  }

  /** Starts a process. It may end at once, if its plan demands it. */
  static start(program: Program, plan: Plan): Child {
    return new Child(program, plan);
  }

  /** Returns its first line, once it works; undefined if it was killed before. */
  async ready(): Promise<string | undefined> {
    const deadline = Date.now() + startMs;
    for (;;) {
      const [line, ...rest] = this.#out.split("\n");
      if (rest.length > 0 && line?.startsWith(readyWord))
        return line.slice(readyWord.length).trim();
      if (this.#child.exitCode !== null) throw new Error("a process ended before it began");
      if (!this.isRunning) return undefined;
      if (Date.now() > deadline) {
        await this.kill();
        throw new Error(`a process did not begin: ${this.#out}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Its number. */
  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** Ends it hard, whatever it does. */
  async kill(): Promise<void> {
    if (this.isRunning) this.signal("SIGKILL");
    await this.ended;
  }

  /** Ends it in good order. */
  async stop(): Promise<boolean> {
    if (this.isRunning) this.signal("SIGTERM");
    return this.ended;
  }
}
