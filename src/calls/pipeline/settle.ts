/**
 * Settles every call, however it ended: the final charge, the record and the ledger, then log and
 * metrics.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { callRecord } from "../../billing/calls/call-record.ts";
import { average } from "../../routing/targets.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import type { Chunk } from "./adapter.ts";
import type { Admitted } from "./admit.ts";
import type { Call } from "./call.ts";
import { reportCall } from "./call-report.ts";
import { type Chargeable, chargeAtEnd, deliveredOf, unreadBytesOf } from "./charge.ts";
import { clampToHold, growToCharge, isLimited } from "./cover.ts";
import type { Delivery } from "./delivery.ts";
import type { Held } from "./hold.ts";
import type { IdempotentCall } from "./idempotent-call.ts";
import { inputOnly } from "./metering.ts";
import type { Connection } from "./connection.ts";
import type { Opened } from "./open.ts";
import { markOverrun } from "./overrun.ts";
import { reportImplausible } from "./plausible.ts";

/** A call with the results of the phases that it reached; at least admitted. */
export type Reached<Out extends Chunk> = Admitted<Out> &
  Partial<Omit<Opened<Out>, keyof Admitted<Out>>>;

/** The state of attempts and delivery when a call ends. */
export interface CallEnd {
  readonly connection: Connection;
  readonly delivery: Delivery;
  /** Undefined for a call without an idempotency key. */
  readonly idempotent?: Pick<IdempotentCall<Chunk>, "end"> | undefined;
}

/**
 * Charges the delivered usage, releases the rest of the hold and writes the record. A call without
 * a hold is only recorded. Resolves when the settlement is durable.
 */
export async function settle<Out extends Chunk>(
  reached: Reached<Out>,
  { connection, delivery, idempotent }: CallEnd,
): Promise<void> {
  const { call, request, deps } = reached;
  connection.close(deliveredOf(reached.reply).usage);
  if (reached.reply?.kind === "stream")
    measurePace(call, reached.reply.stream.textBytes, connection);
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
    if (idempotent !== undefined) await idempotent.end(call);
    if (!call.hasOwnRecord) return;
    deps.ledger.record(callRecord(call));
    reportCall(call, deps);
    return;
  }
  // A charge that the reply reports, or that the stop of a reply has decided, is final.
  if (monitor?.isUsedUp !== true && !delivery.isCostReported) {
    const charging = chargeAtEnd(reached, connection);
    if (charging !== undefined) await charging;
    if (delivery.isWithheld) {
      call.isCharged = false;
      call.costNanos = 0n;
    }
    if (isLimited(call)) await clampToHold(reached);
    else if (call.ending === CallEnding.CLIENT_GONE) await growToCharge(reached);
  }
  markOverrun(reached);
  reportLoss(reached);
  if (reached.planned) {
    const { usage } = deliveredOf(reached.reply);
    deps.upstream.reportUsage(reached.planned.route, usage, reached.price);
  }
  if (idempotent !== undefined) await idempotent.end(call);
  const isWithheld = delivery.isWithheld || unreadBytesOf(reached.reply) > 0;
  if (isWithheld) estimateVendorCost(reached);
  reportCall(call, deps, isWithheld);
  const { id, accountId, costNanos } = call;
  call.trace?.attemptEnded(call);
  call.trace?.startWait();
  await deps.ledger.settle({ id, accountId, costNanos, record: callRecord(call) });
  call.trace?.endWait("uas.settle");
}

function isHeld<Out extends Chunk>(reached: Reached<Out>): reached is Reached<Out> & Held<Out> {
  return reached.plan !== undefined;
}

/**
 * Sets the vendor's cost of a reply that was not delivered, or not to its end. Where the route has
 * no `cost`, the model's own price is the estimate: the loss is visible in any case.
 */
function estimateVendorCost<Out extends Chunk>({
  call,
  price,
  planned,
  reply,
  request,
  tokens,
  deps: { pricing },
}: Chargeable<Out>): void {
  if (planned === undefined) return;
  const unreadTokens = estimateTokens(unreadBytesOf(reply));
  const usage = call.usage ?? inputOnly(tokens.typical);
  const made = { ...usage, ...call.units, outputTokens: usage.outputTokens + unreadTokens };
  const { route } = planned;
  call.vendorCostNanos =
    route.costs === undefined
      ? pricing.cost(call.tierPrice ?? price, made, 0)
      : pricing.vendorCost(route, made, call.startMs, {
          ...request.text.imageForm,
          serviceTier: call.usage?.serviceTier,
        });
}

/** Shorter replies say nothing about a vendor's speed. */
const paceMsMin = 100;

/** Measures how fast a route generates, for requests that sort routes by it. */
function measurePace(call: Call, textBytes: number, { destination }: Connection): void {
  const { contentMs } = call;
  if (destination === undefined || contentMs < paceMsMin) return;
  const { pace } = destination.route;
  pace.bytesPerSecond = average(pace.bytesPerSecond, (textBytes * 1_000) / contentMs);
}

/** Counts and reports what a vendor's implausible figures would have charged beyond the request. */
function reportLoss<Out extends Chunk>(chargeable: Chargeable<Out>): void {
  const { call, planned, reply, deps } = chargeable;
  const { usage } = deliveredOf(reply);
  const { vendor, start, implausibleNanos } = call;
  if (implausibleNanos <= 0n) return;
  reportImplausible(deps, {
    id: { callId: start.id },
    vendor,
    model: planned?.route.model,
    usage,
    lossNanos: implausibleNanos,
  });
}
