/** Runs a program if it can neither see nor leave anything. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "./agent.ts";

/** Environment of a program. */
export interface Room {
  /** The program's path. */
  readonly program: string;
  /** Its home, which exists. */
  readonly home: string;
  /** The folder that it starts in. */
  readonly workFolder: string;
}

/** Result of a program. */
export interface Ending {
  /** The exit code; undefined for a signal, or the time was over. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** The longest that one run may take: the slowest took 44 s on two cores at a load of 25. */
const runMsMax = 90_000;

/** The most of its output that is kept, in characters. */
const outputMax = 4_000_000;

/** Nothing listens there: what would leave the machine fails at once. */
const nowhere = "http://127.0.0.1:9";

/** Runs a program with nothing of this environment but the path. Ends all that it started. */
export async function execute(room: Room, command: Command, input: string): Promise<Ending> {
  const temporary = join(room.home, "tmp");
  mkdirSync(temporary, { recursive: true });
  const child = spawn(room.program, command.args, {
    cwd: room.workFolder,
    env: {
      HOME: room.home,
      PATH: process.env["PATH"],
      TMPDIR: temporary,
      TERM: "dumb",
      LANG: "C.UTF-8",
      HTTP_PROXY: nowhere,
      HTTPS_PROXY: nowhere,
      NO_PROXY: "127.0.0.1,localhost",
      ...command.env,
    },
    // A separate process group, so that all of its processes can be ended.
    detached: true,
  });
  const timer = setTimeout(() => endGroup(child.pid), runMsMax);
  const stdout: string[] = [];
  const stderr: string[] = [];
  child.stdout.setEncoding("utf8").on("data", keepIn(stdout));
  child.stderr.setEncoding("utf8").on("data", keepIn(stderr));
  child.stdin.on("error", () => {}).end(input);
  try {
    const [code]: unknown[] = await once(child, "close");
    return {
      code: typeof code === "number" ? code : undefined,
      stdout: stdout.join(""),
      stderr: stderr.join(""),
    };
  } finally {
    clearTimeout(timer);
    endGroup(child.pid);
  }
}

function keepIn(pieces: string[]): (piece: string) => void {
  let kept = 0;
  return (piece) => {
    kept += piece.length;
    if (kept <= outputMax) pieces.push(piece);
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended, and all that it started.
  }
}
