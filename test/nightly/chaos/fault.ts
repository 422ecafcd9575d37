/** Faults of a round. */
import { crashPoints } from "./plan.ts";
import { canMount } from "./small-disk.ts";

/** One kind of fault. */
export interface Fault {
  readonly name: string;
  /**
   * - `point`: the process kills itself at {@link Fault.name}
   * - `random`: it is killed at a random time
   * - `frozen`: it is stopped until others consider it dead, and then continues
   * - `backend`: the database's process that runs a batch is killed
   * - `server`: the database is stopped immediately and starts again
   * - `stalled`: the database keeps its connections open and does not answer for seconds
   * - `disk`: the journal's disk is full while the database is unreachable
   */
  readonly kind: "point" | "random" | "frozen" | "backend" | "server" | "stalled" | "disk";
}

/** Faults that need a separate database. */
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
 * Faults that whole gateways do not promise to survive: an answer is safe only if the client waits
 * for it.
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
