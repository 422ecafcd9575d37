/** What goes wrong in a round. */
import { findFaketime } from "./clocks.ts";
import { crashPoints } from "./plan.ts";
import { canMount } from "./small-disk.ts";

/** One kind of trouble. */
export interface Fault {
  readonly name: string;
  /**
   * - `point`: the process kills itself at {@link Fault.name}
   * - `random`: it is killed at any time
   * - `frozen`: it is stopped until others take it for dead, and goes on then
   * - `backend`: the database's process that runs a batch is killed
   * - `server`: the database is stopped immediately and starts again
   * - `stalled`: the database keeps its connections open and answers nothing for seconds
   * - `disk`: the journal's disk is full, and the database is away then
   * - `clock`: the process's clock steps by {@link Fault.stepMs} while it works
   * - `database-clock`: the database's clock does
   */
  readonly kind:
    | "point"
    | "random"
    | "frozen"
    | "backend"
    | "server"
    | "stalled"
    | "disk"
    | "clock"
    | "database-clock";
  /** How far a clock steps, in milliseconds. */
  readonly stepMs?: number;
}

const dayMs = 24 * 60 * 60 * 1_000;

/** Those that need a database of the harness's own. */
export function isFragile({ kind }: Fault): boolean {
  return kind === "backend" || kind === "server";
}

/** Those that need a database with a clock of its own. */
export function isOfDatabaseClock({ kind }: Fault): boolean {
  return kind === "database-clock";
}

/** Whether calls may fail because of it. A clock that is wrong is noticed by no client. */
export function mayFailCalls({ kind }: Fault): boolean {
  return kind !== "clock" && kind !== "database-clock";
}

/** Why a fault cannot be made on this machine; `undefined`: it can. */
export function obstacleOf({ kind }: Fault): string | undefined {
  if (kind === "disk" && !canMount())
    return "it mounts a small disk, which needs root and a Linux that lets it";
  if (kind === "database-clock" && findFaketime() === undefined)
    return "it needs libfaketime (Debian: apt-get install libfaketime)";
  return undefined;
}

/** Those that whole gateways do not promise to survive: what a client was told is safe only where it waits for that. */
export function isOfLedgerOnly({ kind }: Fault): boolean {
  return kind === "disk";
}

/** Everything that can go wrong. */
export const faults: readonly Fault[] = [
  ...crashPoints.map((name) => ({ name, kind: "point" as const })),
  { name: "kill -9 at any time", kind: "random" },
  { name: "frozen, taken for dead, thawed", kind: "frozen" },
  { name: "kill -9 of the database's backend", kind: "backend" },
  { name: "immediate stop of the database", kind: "server" },
  { name: "frozen database", kind: "stalled" },
  { name: "full journal disk", kind: "disk" },
  { name: "clock 400 days ahead", kind: "clock", stepMs: 400 * dayMs },
  { name: "clock 400 days behind", kind: "clock", stepMs: -400 * dayMs },
  { name: "database clock a day ahead", kind: "database-clock", stepMs: dayMs },
  { name: "database clock a day behind", kind: "database-clock", stepMs: -dayMs },
];
