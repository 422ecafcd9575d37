/**
 * Calls with keys that are known and no good: each has a record with the true reason, for the key's account and the
 * operator. Their callers learn nothing of it (R-AUTH-2).
 */
import type { Logger } from "pino";
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { callRecord } from "../billing/calls/call-record.ts";
import type { Ledger } from "../billing/ledger/ledger.ts";
import { invalidKey, type OnRefusedKey, type RefusedKey } from "../core/caller.ts";
import { refusedKeyRecordsMax, refusedKeysMax, refusedKeyWindowMs } from "../config/limits.ts";
import type { Metrics } from "../core/metrics.ts";
import { newId } from "../core/uuid.ts";
import { Call } from "./pipeline/call.ts";
import { reportCall } from "./pipeline/settle.ts";

const endings: Readonly<Record<RefusedKey["reason"], CallEnding>> = {
  disabled: CallEnding.KEY_DISABLED,
  deleted: CallEnding.KEY_DELETED,
  expired: CallEnding.KEY_EXPIRED,
};

/** What {@link createRefusedKeys} needs. */
export interface RefusedKeysOptions {
  readonly ledger: Pick<Ledger, "record">;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Takes calls with such keys. */
export interface RefusedKeys {
  /** Records a call, unless its key has had its share of records. */
  readonly record: OnRefusedKey;
  /** Tells how many calls of the last minute have no record. */
  stop(): Promise<void>;
}

/** Records them: of each key so many a minute, for a client that hammers with a disabled key must not fill the log.
 * The others are counted, and the log is told their number when the minute is over. */
export function createRefusedKeys(options: RefusedKeysOptions): RefusedKeys {
  const { ledger, log } = options;
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
      const call = refusedCall(key, request);
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
): Call {
  const call = new Call({ ...request, id: newId(), accountId, keyId, discountBp: 0 });
  call.end(endings[reason], invalidKey());
  return call;
}
