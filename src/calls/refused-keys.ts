/**
 * Records calls with a disabled, deleted or expired key, with the true reason, for the key's
 * account and the operator. The caller does not learn the reason (R-AUTH-2).
 */
import { CallEnding } from "../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../billing/calls/call-record.ts";
import { invalidKey, type OnRefusedKey, type RefusedKey } from "../core/caller.ts";
import type { Clock } from "../core/clock.ts";
import { Call } from "./pipeline/call.ts";
import { reportCall } from "./pipeline/call-report.ts";
import type { Refusals, RefusalsOptions } from "./pipeline/refusals.ts";

const endings: Readonly<Record<RefusedKey["reason"], CallEnding>> = {
  disabled: CallEnding.KEY_DISABLED,
  deleted: CallEnding.KEY_DELETED,
  expired: CallEnding.KEY_EXPIRED,
};

/** Options of {@link createRefusedKeys}. */
export interface RefusedKeysOptions extends RefusalsOptions {
  readonly refusals: Pick<Refusals, "passes">;
  readonly clock: Clock;
}

/** Creates the recorder. */
export function createRefusedKeys(options: RefusedKeysOptions): OnRefusedKey {
  return (key, request) => {
    const call = refusedCall(key, request, options.clock);
    if (!options.refusals.passes(call)) return;
    options.ledger.record(callRecord(call));
    reportCall(call, options);
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
