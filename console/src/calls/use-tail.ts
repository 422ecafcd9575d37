/** Calls as they are recorded, pushed by the gateway. */
import { createClient } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { transport } from "../common/rpc.ts";

/** The most calls that are kept. */
const keptMax = 200;

/** The pause before a broken stream is reopened. */
const againMs = 2_000;

const client = createClient(CallService, transport);

type Filter = NonNullable<Parameters<typeof client.tailCalls>[0]["filter"]>;

/** The calls of the stream so far. */
export interface Tail {
  /** The calls since the stream began, newest first. */
  readonly calls: readonly CallRecord[];
  /** Whether the stream is open. */
  readonly isLive: boolean;
  /** The number of calls that the gateway omitted because there were too many. */
  readonly skipped: number;
}

const nothing: Tail = { calls: [], isLive: false, skipped: 0 };

/** Follows the calls of an account while `isOn`. A stream that ends is reopened. */
export function useTail({
  accountId,
  filter,
  isOn,
}: {
  accountId: string;
  filter?: Filter;
  isOn: boolean;
}): Tail {
  const [tail, setTail] = useState(nothing);
  const wanted = JSON.stringify(filter ?? {}, (_name, value: unknown) =>
    typeof value === "bigint" ? String(value) : value,
  );
  useEffect(() => {
    setTail(nothing);
    if (!isOn) return undefined;
    const leaving = new AbortController();
    void follow({ accountId, ...(filter && { filter }) }, { signal: leaving.signal, setTail });
    return () => leaving.abort();
    // `wanted` stands for `filter`, which is a new object at each rendering.
    // oxlint-disable-next-line react/exhaustive-deps
  }, [accountId, wanted, isOn]);
  return tail;
}

async function follow(
  request: { accountId: string; filter?: Filter },
  { signal, setTail }: { signal: AbortSignal; setTail: (change: (tail: Tail) => Tail) => void },
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const { calls, skippedCount } of client.tailCalls(request, { signal })) {
        setTail((tail) => ({
          calls: merge(tail.calls, calls),
          isLive: true,
          skipped: tail.skipped + skippedCount,
        }));
      }
    } catch {
      // Lost or refused: `isLive` shows it, and the stream is reopened.
      setTail((tail) => ({ ...tail, isLive: false }));
      await pause(againMs, signal);
    }
  }
}

/** A call that is sent again was adjusted: the newer record replaces the older one. */
function merge(kept: readonly CallRecord[], came: readonly CallRecord[]): readonly CallRecord[] {
  if (came.length === 0) return kept;
  const ids = new Set(came.map(({ callId }) => callId));
  const rest = kept.filter(({ callId }) => !ids.has(callId));
  return [...came.toReversed(), ...rest].slice(0, keptMax);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
