/** The work of a round's processes, and the check of its results. */
import { checkBooks, type Checked, type Findings } from "./check.ts";
import { Child } from "./child.ts";
import { join } from "node:path";
import { readHistory } from "./history.ts";
import type { Plan } from "./plan.ts";
import type { Site } from "./site.ts";

/** Options of a working process. */
export type Orders = Pick<Plan, "workers" | "seed" | "timings" | "isFull" | "journal" | "crash">;

/** The work of a round. */
export interface Work {
  /**
   * Maximum number of times a process passes a point before it is killed there: as often as in a
   * second or two.
   */
  readonly passesMax: number;
  /** Starts a process and lets it work, once it can. */
  start(orders: Orders): Promise<Child>;
  /** Compares what was acknowledged with the books. All processes have ended. */
  check(findings: Findings): Promise<Checked>;
  close(): Promise<void>;
}

/** Processes with a ledger, and callers inside them that write down what they hear. */
export async function openLedgerWork(site: Site): Promise<Work> {
  const histories: string[] = [];
  const { url, dataDir, accountIds } = site;
  return {
    passesMax: 60,
    async start(orders) {
      const history = join(dataDir, `history-${histories.length}`);
      histories.push(history);
      const child = Child.start("ledger-child", { url, dataDir, accountIds, history, ...orders });
      await child.ready();
      return child;
    },
    check: (findings) => checkBooks(site.pool, readHistory(histories), findings),
    async close() {},
  };
}
