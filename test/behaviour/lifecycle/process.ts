/** The real `uas serve` in a separate process, with free ports and a separate folder. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

const bin = join(import.meta.dirname, "../../../bin/uas.js");

/** Maximum time of any step on a busy machine. */
const patienceMs = 120_000;

/** The token of the processes' operator, if a test gives them one. */
export const operatorToken = "operator-canary-77aa";

/** A working directory. Close it when its processes have ended. */
export interface Place {
  readonly folder: string;
  close(): void;
}

/** Makes one, with these files. */
export function makePlace(files: Readonly<Record<string, string>> = {}): Place {
  const folder = mkdtempSync(join(tmpdir(), "uas-life-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return { folder, close: () => rmSync(folder, { recursive: true, force: true }) };
}

/** End of a process. */
export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

/** A process. */
export class Process {
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  #out = "";
  #err = "";

  /** @param program the command and its first arguments. Default: this project's */
  constructor(
    place: Place,
    env: Readonly<Record<string, string>> = {},
    [program, ...args]: readonly [string, ...string[]] = [process.execPath, bin],
  ) {
    this.#child = spawn(program, [...args, "serve"], {
      cwd: place.folder,
      env: {
        PATH: process.env["PATH"],
        UAS_LISTEN: "127.0.0.1:0",
        UAS_INTERNAL_LISTEN: "127.0.0.1:0",
        UAS_DRAIN_DELAY: "0s",
        ...env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child.stdout?.on("data", (piece: Buffer) => (this.#out += piece.toString()));
    this.#child.stderr?.on("data", (piece: Buffer) => (this.#err += piece.toString()));
    this.ended = new Promise((resolve) => {
      this.#child.once("close", (code, signal) =>
        resolve({ code, signal, out: this.#out, err: this.#err }),
      );
    });
  }

  /** Its process id. */
  get pid(): number {
    return this.#child.pid ?? Number.NaN;
  }

  /** Standard output so far. */
  get out(): string {
    return this.#out;
  }

  /** Standard error so far. */
  get err(): string {
    return this.#err;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  /** The line of its log with this message, once it is there. */
  async logged(message: string): Promise<Readonly<Record<string, unknown>>> {
    const mark = `"msg":"${message}"`;
    return until(`the log says ${mark}; it says ${this.#out}${this.#err}`, () => {
      const line = this.#out.split("\n").find((each) => each.includes(mark));
      if (line !== undefined) return JSON.parse(line) as Record<string, unknown>;
      if (!this.isRunning) throw new Error(`it has ended: ${this.#out}${this.#err}`);
      return undefined;
    });
  }

  /** Where it listens, once it does. */
  async listening(): Promise<{ readonly url: string; readonly internalUrl: string }> {
    const { listenUrl, publicUrl, internalUrl } = await this.logged("listening");
    // Release 0.2.0 logs the address as publicUrl.
    return { url: String(listenUrl ?? publicUrl), internalUrl: String(internalUrl) };
  }

  /** Drains it. */
  stop(): Promise<Ended> {
    this.signal("SIGTERM");
    return this.ended;
  }

  /** Ends it whatever it does; for after hooks. */
  async kill(): Promise<void> {
    if (this.isRunning) this.signal("SIGKILL");
    await this.ended;
  }
}

/** Looks again and again until there is something. @throws if it takes too long, naming `what` */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  for (const end = Date.now() + patienceMs; ; await sleep(10)) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`not within ${patienceMs} ms: ${what}`);
  }
}
