/** Walking from call to call while the details of one are open. */
import { useEffect } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";

/** J opens the next call of the list, K the one before. Not while something is typed. */
export function useWalk(
  rows: readonly CallRecord[] | undefined,
  { openId, onOpen }: { openId: string | undefined; onOpen: (call: CallRecord) => void },
): void {
  useEffect(() => {
    if (openId === undefined || rows === undefined) return undefined;
    const walk = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.matches("input, textarea, select"))
        return;
      const step = { j: 1, k: -1 }[event.key];
      const at = rows.findIndex(({ callId }) => callId === openId);
      const next = step === undefined || at < 0 ? undefined : rows[at + step];
      if (next !== undefined) onOpen(next);
    };
    addEventListener("keydown", walk);
    return () => removeEventListener("keydown", walk);
  }, [rows, openId, onOpen]);
}
