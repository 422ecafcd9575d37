/**
 * Records calls with a disabled, deleted or expired key, with the true reason, for the key's
 * account and the operator. The caller does not learn the reason (R-AUTH-2).
 */
import type { Logger } from "pino";
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../billing/calls/call-record.ts";
import type { Ledger } from "../billing/ledger/ledger.ts";
import { invalidKey, type OnRefusedKey, type RefusedKey } from "../core/caller.ts";
import { refusedKeyRecordsMax, refusedKeysMax, refusedKeyWindowMs } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../observe/metrics.ts";
import { Call } from "./pipeline/call.ts";
import { reportCall } from "./pipeline/call-report.ts";

const endings: Readonly<Record<RefusedKey["reason"], CallEnding>> = {
  disabled: CallEnding.KEY_DISABLED,
  deleted: CallEnding.KEY_DELETED,
  expired: CallEnding.KEY_EXPIRED,
};

/** Options of {@link createRefusedKeys}. */
export interface RefusedKeysOptions {
  readonly ledger: Pick<Ledger, "record">;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
}

/** Records calls with refused keys. */
export interface RefusedKeys {
  /** Records a call. @returns false if its key has reached the limit of records */
  readonly record: OnRefusedKey;
  /** Logs how many calls of the current minute have no record. */
  stop(): Promise<void>;
}

/**
 * Creates the recorder. Each key has a limit of records a minute, because a client that retries a
 * disabled key in a loop must not fill the call log. Further calls are counted, and their number is
 * logged at the end of the minute.
 */
export function createRefusedKeys(options: RefusedKeysOptions): RefusedKeys {
  const { ledger, log, clock } = options;
  let counts = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  const endWindow = (): void => {
    for (const [keyId, count] of counts) {
      const unrecorded = count - refusedKeyRecordsMax;
      if (unrecorded > 0) {
        log.warn({ keyId, unrecorded }, "calls with a refused API key were not recorded");
      }
    }
    counts = new Map();
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    record(key, request) {
      const { keyId } = key;
      const count = counts.get(keyId) ?? 0;
      if (count === 0 && counts.size >= refusedKeysMax) return false;
      timer ??= setTimeout(endWindow, refusedKeyWindowMs).unref();
      counts.set(keyId, count + 1);
      if (count >= refusedKeyRecordsMax) return false;
      const call = refusedCall(key, request, clock);
      ledger.record(callRecord(call));
      reportCall(call, options);
      return true;
    },
    stop: async () => endWindow(),
  };
}

function refusedCall(
  { accountId, keyId, reason }: RefusedKey,
  request: Parameters<OnRefusedKey>[1],
  clock: Clock,
): Call {
  const id = clock.newId();
  const startMs = clock.now();
  const call = new Call({ ...request, id, startMs, accountId, keyId, discountBp: 0 });
  call.end(endings[reason], invalidKey());
  return call;
}
