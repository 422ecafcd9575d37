/** What goes wrong in a round. */
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
   */
  readonly kind: "point" | "random" | "frozen" | "backend" | "server" | "stalled" | "disk";
}

/** Those that need a database of the harness's own. */
export function isFragile({ kind }: Fault): boolean {
  return kind === "backend" || kind === "server";
}

/** Why a fault cannot be made on this machine; undefined if it can. */
export function obstacleOf({ kind }: Fault): string | undefined {
  if (kind === "disk" && !canMount())
    return "it mounts a small disk, which needs root and a Linux that lets it";
  return undefined;
}

/**
 * Those that whole gateways do not promise to survive: what a client was told is safe only if it
 * waits for that.
 */
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
];
