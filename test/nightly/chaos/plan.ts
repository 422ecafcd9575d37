/** The plan of a process of the chaos rig, and the words of its history. */
import { killSelf } from "../../support/child.ts";
import type { JournalNames } from "../../../src/billing/journal/journal-files.ts";
import type { LedgerTimings } from "../../../src/billing/ledger/ledger.ts";

/** The process ends itself when it passes `point` for the `hit`-th time. */
export interface Crash {
  readonly point: string;
  readonly hit: number;
}

/** One life of a process. Travels as JSON in the variable {@link planVariable}. */
export interface Plan {
  /** The database. */
  readonly url: string;
  /** The data folder; the journals are below it. */
  readonly dataDir: string;
  /** The journal files of the process. */
  readonly journal: JournalNames;
  /**
   * File of its history. A separate ledger has one; the clients of a gateway write theirs
   * elsewhere.
   */
  readonly history: string;
  readonly seed: number;
  readonly accountIds: readonly string[];
  /** Number of concurrent calls. 0: it only recovers the work of others. */
  readonly workers: number;
  readonly timings: Partial<LedgerTimings>;
  /** Whether tasks too have the timings of production. */
  readonly isFull: boolean;
  readonly crash?: Crash;
  /** The simulated vendor of a gateway: of texts, or of tasks that make pictures. */
  readonly vendor?: {
    readonly kind: "openai-compatible" | "fal";
    readonly baseUrl: string;
    readonly secret: string;
  };
}

/** The environment variable that carries a {@link Plan}. */
export const planVariable = "UAS_CHAOS_PLAN";

/** Output of a process once it works. A gateway adds its address. */
export const readyWord = "ready";

/** Reads the plan of this process. */
export function readPlan(): Plan {
  return JSON.parse(process.env[planVariable] ?? "") as Plan;
}

/** Ends this process with its parent, whatever ends that: nothing of the harness stays behind. */
export function endWithParent(): void {
  process.stdin.on("close", () => process.exit(1)).resume();
  process.stdin.unref();
}

/** Kills the process if the plan demands it; undefined otherwise. */
export function crashAt({ crash }: Plan): ((point: string) => void) | undefined {
  if (crash === undefined) return undefined;
  let left = crash.hit;
  return (point) => {
    if (point === crash.point && --left === 0) killSelf();
  };
}

/** Every point at which a process can be killed. */
export const crashPoints: readonly string[] = [
  ...["hold", "extend", "settle", "release"].flatMap((operation) =>
    ["queued", "sent", "answered"].map((stage) => `${operation}.${stage}`),
  ),
  "heartbeat.sent",
  "heartbeat.answered",
  "recovery.found",
  "recovery.begun",
  "recovery.done",
  "journal.written",
  "journal.synced",
  "journal.replayed",
  "journal.removed",
];

/** Repeatable random numbers from 0 to below 1 (mulberry32): a seed reproduces a whole run. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
