/**
 * Records refused calls, in bounded numbers: a client that goes on after a refusal must not fill
 * database and log for free. Of each key and reason, the first calls of a minute have a record and
 * a log line each. The others share one record, which has their number, and one log line.
 */
import type { Logger } from "pino";
import { callRecord, refusedUnit } from "../../billing/calls/call-record.ts";
import type { CallRow } from "../../billing/calls/call-row.ts";
import type { Ledger } from "../../billing/ledger/ledger.ts";
import { refusalKindsMax, refusalRecordsMax, refusalWindowMs } from "../../core/limits.ts";
import { type Left, Repeats } from "../../core/repeats.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { Call } from "./call.ts";

/** Options of {@link Refusals}. */
export interface RefusalsOptions {
  readonly ledger: Pick<Ledger, "record">;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Bounds the records of refused calls. */
export class Refusals {
  readonly #repeats: Repeats<CallRow>;
  readonly #metrics: Metrics;

  constructor({ ledger, log, metrics }: RefusalsOptions) {
    this.#metrics = metrics;
    this.#repeats = new Repeats({
      max: refusalRecordsMax,
      windowMs: refusalWindowMs,
      kindsMax: refusalKindsMax,
      onEnd: (left) => endWindow(left, { ledger, log }),
    });
  }

  /** Counts a call that was refused. @returns whether it has a record and a log line of its own */
  passes(call: Call): boolean {
    const { keyId, ending, errorCode, status } = call;
    this.#metrics.refusedCalls.inc({ reason: errorCode || "none" });
    const kind = `${keyId} ${ending} ${status} ${errorCode}`;
    return this.#repeats.passes(kind, () => callRecord(call));
  }

  /** Writes what is counted. */
  async stop(): Promise<void> {
    this.#repeats.end();
  }
}

function endWindow(
  { count, first }: Left<CallRow>,
  { ledger, log }: Pick<RefusalsOptions, "ledger" | "log">,
): void {
  if (first === undefined) {
    log.warn({ count }, "refused calls were not recorded: too many keys had refused calls");
    return;
  }
  ledger.record({ ...first, units: { [refusedUnit]: count } });
  const { account_id: accountId, key_id: keyId, status, error_code: errorCode } = first;
  const requestId = first.request_id;
  const fields = { requestId, callId: first.id, accountId, keyId, status, errorCode, count };
  log.info(fields, "further calls were refused for the same reason; one record has their number");
}
