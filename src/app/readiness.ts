/** Decides whether calls can be served, for `/readyz`. */
import type { Pool } from "pg";
import type { LedgerWriter } from "../billing/ledger/ledger-writer.ts";
import type { ClockCheck } from "./clock-check.ts";
import type { RunningCalls } from "../calls/running-calls.ts";

/** Cache time of a readiness result. */
const readyMs = 1_000;

/** The dependencies of readiness. */
interface ReadinessOptions {
  readonly pool: Pool;
  readonly calls: Pick<RunningCalls, "isOpen">;
  readonly ledger: Pick<LedgerWriter, "blockedBy">;
  readonly clock: Pick<ClockCheck, "problem">;
}

/** Why calls cannot be served; `undefined` if they can. Never contacts a vendor. */
export function createReadiness({
  pool,
  calls,
  ledger,
  clock,
}: ReadinessOptions): () => Promise<string | undefined> {
  const isSilent = "the database does not answer";
  let checkedMs = Number.NEGATIVE_INFINITY;
  let answer: Promise<string | undefined> = Promise.resolve(isSilent);
  return async () => {
    if (!calls.isOpen) return "the gateway is stopping";
    if (performance.now() - checkedMs > readyMs) {
      checkedMs = performance.now();
      const query = pool.query("select 1").then(
        () => undefined,
        () => isSilent,
      );
      const late = new Promise<string>((resolve) => {
        setTimeout(resolve, readyMs, isSilent).unref();
      });
      answer = Promise.race([query, late]);
    }
    return (await answer) ?? ledger.blockedBy ?? clock.problem;
  };
}
