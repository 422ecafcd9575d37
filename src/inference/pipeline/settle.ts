/**
 * Settles a call, however it ended: usage, charge, record, ledger; then the log and the metrics. R-MON-8.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { callRecord } from "../../billing/call-record.ts";
import type { Estimate } from "../tokens/request-tokens.ts";
import type { Admitted } from "./admit.ts";
import type { Chunk } from "./adapter.ts";
import type { Delivery } from "./deliver.ts";
import type { Held } from "./hold.ts";
import type { Connection, Opened, Reply } from "./open.ts";
import { reportCall } from "./report.ts";

/** A call as far as it has come: at least admitted. */
export type Reached<Out extends Chunk> = Admitted<Out> &
  Partial<Omit<Opened<Out>, keyof Admitted<Out>>>;

/** A call whose money is held, whether a vendor has answered or not. */
type Chargeable<Out extends Chunk> = Held<Out> & Partial<Pick<Opened<Out>, "planned" | "reply">>;

/** What beside the phases is known of a call at its end. */
export interface Ended {
  readonly connection: Connection;
  readonly delivery: Delivery;
}

/**
 * Charges what was delivered, frees the rest and writes the record. A call that held nothing is recorded only.
 * Resolves when the settlement is durable.
 */
export async function settle<Out extends Chunk>(
  reached: Reached<Out>,
  { connection, delivery }: Ended,
): Promise<void> {
  const { call, request, deps } = reached;
  connection.close();
  const { monitor, isDone } = delivery;
  if (monitor !== undefined) {
    deps.streams.delete(monitor);
    monitor.end();
  }
  const { dropped } = connection;
  const { droppedOfReply = [] } = request ?? {};
  if (dropped.length + droppedOfReply.length > 0) {
    call.dropped = [...new Set([...dropped, ...droppedOfReply])];
  }
  connection.client.endDelivered(isDone);
  if (!isHeld(reached)) {
    deps.ledger.record(callRecord(call));
    reportCall(call, deps);
    return;
  }
  // What the stop of a reply has told is what is charged.
  if (monitor?.isUsedUp !== true) chargeToDate(reached, await estimate(reached, connection));
  reportCall(call, deps);
  const { id, accountId, costNanos } = call;
  await deps.ledger.settle({ id, accountId, costNanos, record: callRecord(call) });
}

function isHeld<Out extends Chunk>(reached: Reached<Out>): reached is Reached<Out> & Held<Out> {
  return reached.plan !== undefined;
}

/** What is charged for where the vendor reported nothing; `undefined`: it did, or delivered nothing. */
async function estimate<Out extends Chunk>(
  { tokens, reply }: Chargeable<Out>,
  connection: Connection,
): Promise<Estimate | undefined> {
  if (reply === undefined || reply.kind === "refusal") return undefined;
  const reported = reply.kind === "whole" ? reply.whole.usage : reply.stream.usage;
  if (reported !== undefined) return undefined;
  const vendorModel = connection.planned?.route.model;
  const body = reply.kind === "whole" ? reply.body : undefined;
  return tokens.estimate({ reported, vendorModel, reply: body });
}

/**
 * Writes on the call what it consumed so far, and what that costs; may be repeated while it runs. What a vendor takes
 * for a call that its customer has for nothing is still known.
 *
 * @param estimated the gateway's own figures; default: the size of the request
 */
export function chargeToDate<Out extends Chunk>(
  { call, request, price, tokens, planned, reply, deps: { pricing } }: Chargeable<Out>,
  estimated?: Estimate,
): void {
  const { usage: reported, textBytes, units, isComplete } = deliveredOf(reply);
  const metered = request.meter({
    reported,
    ...(estimated ?? { inputTokens: reported ? 0 : tokens.usual }),
    textBytes,
    units,
    isWhole: isComplete || call.ending === CallEnding.COMPLETED,
    wantsText: request.text.maxOutputTokens !== 0,
  });
  call.usage = metered.usage;
  call.units = metered.units;
  call.usageSource = metered.source;
  call.isCharged = metered.isCharged && metered.usage !== undefined;
  const usage = metered.usage && { ...metered.usage, ...metered.units };
  call.costNanos = usage && metered.isCharged ? pricing.cost(price, usage, call.discountBp) : 0n;
  call.vendorCostNanos = usage && planned && pricing.vendorCost(planned.route, usage, call.startMs);
}

/** What has come of a reply. */
function deliveredOf<Out extends Chunk>(reply: Reply<Out> | undefined) {
  if (reply?.kind === "stream") return reply.stream;
  if (reply?.kind === "whole") {
    const { usage, textBytes, units } = reply.whole;
    return { usage, textBytes, units, isComplete: true };
  }
  return nothing;
}

const nothing = { usage: undefined, textBytes: 0, units: undefined, isComplete: false } as const;
