/** What happened to a call, in the order of time. Pure. */
import { create } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type CallRecord, LedgerKind } from "../../../gen/uas/billing/v1/billing_pb.ts";
import {
  type CallEvent,
  CallEventKind,
  CallEventSchema,
} from "../../../gen/uas/billing/v1/call_pb.ts";
import { HoldEventKind, type Receipt } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import type { Money } from "../../../gen/uas/type/v1/money_pb.ts";

const holdKinds: Readonly<Partial<Record<HoldEventKind, CallEventKind>>> = {
  [HoldEventKind.HELD]: CallEventKind.HELD,
  [HoldEventKind.GROWN]: CallEventKind.HOLD_GROWN,
};

const entryKinds: Readonly<Partial<Record<LedgerKind, CallEventKind>>> = {
  [LedgerKind.CHARGE]: CallEventKind.CHARGED,
  [LedgerKind.LATE_SETTLEMENT]: CallEventKind.CORRECTED,
  [LedgerKind.REFUND]: CallEventKind.REFUNDED,
};

/** Tells them from the record and the receipt. Events of the same moment stand in the order of a call's life. */
export function callEvents(call: CallRecord, receipt: Receipt): CallEvent[] {
  const startMs = call.startTime === undefined ? 0 : timestampMs(call.startTime);
  const after = (ms: number): Timestamp => timestampFromMs(startMs + ms);
  const events = [
    event(CallEventKind.STARTED, after(0)),
    ...receipt.holds.map(({ kind, time, held }) => event(holdKinds[kind], time, held)),
    event(call.firstByteMs > 0 ? CallEventKind.FIRST_CONTENT : undefined, after(call.firstByteMs)),
    event(CallEventKind.ENDED, after(call.durationMs)),
    ...receipt.entries.map(({ kind, createTime }) => event(entryKinds[kind], createTime)),
  ];
  return events
    .filter((each) => each !== undefined)
    .toSorted((a, b) => timeMs(a) - timeMs(b) || a.kind - b.kind);
}

function event(
  kind: CallEventKind | undefined,
  time: Timestamp | undefined,
  held?: Money,
): CallEvent | undefined {
  if (kind === undefined || time === undefined) return undefined;
  return create(CallEventSchema, { kind, time, ...(held && { held }) });
}

function timeMs({ time }: CallEvent): number {
  return time === undefined ? 0 : timestampMs(time);
}
