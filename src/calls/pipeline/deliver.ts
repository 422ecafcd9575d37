/**
 * Delivers a reply to its caller: relayed or translated, metered, and monitored against its hold.
 */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { stateWaitMs } from "../../core/limits.ts";
import { withTimeout } from "../../core/async.ts";
import type { Sink, SinkHead } from "../../core/sink.ts";
import { unusableReply } from "../../routing/upstream-refusal.ts";
import type { Chunk, WholeReply } from "./adapter.ts";
import { toGatewayError } from "./failures.ts";
import { HoldMonitor } from "./hold-monitor.ts";
import { logFailure, logStoreFailure } from "./call-report.ts";
import { chargeToDate } from "./charge.ts";
import { CostReport } from "./cost-report.ts";
import { coverReply } from "./cover.ts";
import type { Delivery } from "./delivery.ts";
import type { Connection } from "./connection.ts";
import type { Opened } from "./open.ts";
import { StreamReply } from "./reply.ts";

/** The state of a delivery that decides how the call ends. */
interface Deliverance {
  readonly connection: Connection;
  readonly delivery: Delivery;
}

/**
 * Delivers a reply. A failed stream ends with the error event of its style; if the style has none,
 * the failure is thrown.
 *
 * @returns undefined if a whole reply was sent at once
 * @throws GatewayError
 */
export function deliver<Out extends Chunk>(
  opened: Opened<Out>,
  sink: Sink<Out>,
  ended: Deliverance,
): Promise<void> | undefined {
  const { reply } = opened;
  const writer = opened.request.costWriter();
  const costReport = writer && new CostReport(opened, writer, ended);
  if (reply.kind === "stream") {
    return deliverStream(opened, reply.stream, { ...ended, sink, costReport });
  }
  if (reply.kind === "whole" && reply.whole.isFailed) {
    opened.call.end(CallEnding.UPSTREAM_FAILED, unusableReply("no result"));
  }
  if (ended.connection.client.isDetached) return undefined;
  if (reply.kind === "refusal") return sendWhole(opened, sink, { ...ended, out: reply.body });
  const { body: out } = reply.whole;
  const canExceed = canExceedHold(opened, reply.whole);
  if (canExceed || costReport !== undefined) {
    return completeWhole(opened, sink, { ...ended, out, canExceed, costReport });
  }
  const stored = store(opened, out);
  if (stored === undefined) return sendWhole(opened, sink, { ...ended, out });
  return stored.then(() => sendWhole(opened, sink, { ...ended, out }));
}

/**
 * Whether a complete reply may cost more than is held: it exceeds its bound, or its tokens were not
 * counted.
 */
function canExceedHold<Out extends Chunk>(
  { plan }: Opened<Out>,
  { usage, units }: WholeReply<Out>,
): boolean {
  if (usage === undefined || usage.outputTokens === 0 || units !== undefined) return true;
  return usage.outputTokens > plan.maxTokens || usage.inputTokens > plan.inputTokens;
}

interface StreamContext<Out extends Chunk> extends Deliverance {
  readonly sink: Sink<Out>;
  readonly costReport: CostReport<Out> | undefined;
}

async function deliverStream<Out extends Chunk>(
  opened: Opened<Out>,
  stream: StreamReply<Out>,
  { sink, connection, delivery, costReport }: StreamContext<Out>,
): Promise<void> {
  const { client, dropped } = connection;
  const monitor = monitored(opened, stream);
  delivery.monitor = monitor;
  const head = headOf(opened, { length: undefined, dropped, isDetached: client.isDetached });
  try {
    if (!client.isDetached) {
      sink.head(head);
      await relay(opened, stream, { sink, monitor, connection, costReport });
    }
    if (client.isDetached) await drain(stream, monitor);
  } catch (error) {
    await fail(opened, stream, { error, sink, connection, costReport });
  } finally {
    delivery.isDone = stream.isDone;
  }
}

/** Sends a whole reply that must be paid for first, or that reports its cost. */
async function completeWhole<Out extends Chunk>(
  opened: Opened<Out>,
  sink: Sink<Out>,
  {
    out,
    canExceed,
    costReport,
    ...ended
  }: Deliverance & {
    readonly out: Out;
    readonly canExceed: boolean;
    readonly costReport: CostReport<Out> | undefined;
  },
): Promise<void> {
  if (canExceed) await cover(opened, ended.delivery);
  await store(opened, out);
  if (costReport === undefined) return sendWhole(opened, sink, { ...ended, out });
  const { body, cost } = await costReport.whole(out);
  return sendWhole(opened, sink, { ...ended, out: body, cost });
}

function sendWhole<Out extends Chunk>(
  opened: Opened<Out>,
  sink: Sink<Out>,
  {
    out,
    cost,
    connection,
    delivery,
  }: Deliverance & { readonly out: Out; readonly cost?: string | undefined },
): undefined {
  const { dropped } = connection;
  const head = headOf(opened, { length: out.length, dropped, isDetached: false, cost });
  sink.whole(head, out);
  opened.call.relayed();
  delivery.isDone = true;
}

/**
 * Ensures, before a complete reply is sent, that its hold covers its cost. Only for replies that
 * may cost more than is held (R-MON-12).
 */
async function cover<Out extends Chunk>(opened: Opened<Out>, delivery: Delivery): Promise<void> {
  chargeToDate(opened);
  delivery.isWithheld = true;
  await coverReply(opened, opened.call.costNanos);
  delivery.isWithheld = false;
}

function monitored<Out extends Chunk>(opened: Opened<Out>, reply: StreamReply<Out>): HoldMonitor {
  const { call, plan, price, deps } = opened;
  const { ledger, pricing, streams } = deps;
  const monitor = new HoldMonitor({
    call,
    reply,
    plan,
    ledger,
    charge: () => chargeToDate(opened),
    costOf: (usage) =>
      pricing.cost(call.tierPrice ?? price, { ...usage, ...call.units }, call.discountBp),
  });
  streams.add(monitor);
  return monitor;
}

interface RelayContext<Out extends Chunk> {
  readonly sink: Sink<Out>;
  readonly monitor: HoldMonitor;
  readonly connection: Connection;
  /** Reports the cost; undefined if the caller did not ask for it. */
  readonly costReport: CostReport<Out> | undefined;
}

/** Sends the stream to the caller until it ends or the client disconnects. */
async function relay<Out extends Chunk>(
  opened: Opened<Out>,
  reply: StreamReply<Out>,
  { sink, monitor, connection: { client }, costReport }: RelayContext<Out>,
): Promise<void> {
  const { call } = opened;
  for (;;) {
    try {
      while (await reply.ready()) {
        const out = reply.take(monitor.bytesAhead);
        if (out === undefined) {
          await monitor.coverEvent();
          continue;
        }
        const answer = monitor.onRead();
        if (out.length > 0) {
          call.relayed();
          if (isLast(opened, reply)) await store(opened, out);
          const full = costReport
            ? send(sink, await costReport.pass(out, reply.isDone))
            : sink.chunk(out);
          if (full !== undefined) await full;
        }
        if (answer !== undefined) await answer;
        if (client.isDetached) return;
      }
    } catch (error) {
      // A stopped vendor breaks off its connection.
      if (!reply.isStopped) throw error;
    }
    if (client.isDetached) return;
    const rest = reply.rest(monitor.bytesAhead);
    if (rest === undefined && reply.unreadEventBytes > 0 && !reply.isStopped) {
      await monitor.coverEvent();
      continue;
    }
    if (rest === undefined) {
      if (costReport !== undefined) await send(sink, await costReport.end());
      call.end(CallEnding.COMPLETED);
      return;
    }
    if (isLast(opened, reply)) await store(opened, rest);
    const full = costReport
      ? send(sink, await costReport.pass(rest, reply.isDone))
      : sink.chunk(rest);
    if (full !== undefined) await full;
  }
}

/** Sends a piece if it is not empty: an empty piece would end the reply. */
function send<Out extends Chunk>(sink: Sink<Out>, out: Out): Promise<void> | undefined {
  return out.length === 0 ? undefined : sink.chunk(out);
}

/**
 * Whether the client has the whole reply now. A stopped vendor has stored nothing that a request
 * could refer to.
 */
function isLast<Out extends Chunk>(
  { planned, request }: Opened<Out>,
  reply: StreamReply<Out>,
): boolean {
  return reply.isDone || (reply.isStopped && planned.dialect !== request.dialect);
}

/** Reads the rest of the stream, for its usage. */
async function drain<Out extends Chunk>(
  reply: StreamReply<Out>,
  monitor: HoldMonitor,
): Promise<void> {
  try {
    while (await reply.ready()) {
      if (reply.take(monitor.bytesAhead) === undefined) reply.allowEvent();
      const answer = monitor.onRead();
      if (answer !== undefined) await answer;
    }
    reply.rest();
    if (reply.unreadEventBytes === 0) return;
    reply.allowEvent();
    reply.rest();
  } catch {
    // The usage so far is known, and there is no client to report a failure to.
  }
}

/**
 * Stores what a later request may refer to; undefined if there is nothing. A failure is only
 * logged: the reply itself is complete.
 */
function store<Out extends Chunk>(
  { call, request, planned, deps }: Opened<Out>,
  last: Out,
): Promise<void> | undefined {
  const onFailure = (error: unknown): void => logStoreFailure(call, error, deps.log);
  try {
    const stored = request.keep(last, planned);
    return stored && withTimeout(stateWaitMs, stored).catch(onFailure);
  } catch (error) {
    onFailure(error);
    return undefined;
  }
}

interface FailureContext<Out extends Chunk> extends Omit<RelayContext<Out>, "monitor"> {
  readonly error: unknown;
}

/**
 * Ends a failed stream with the error event of its style. @throws GatewayError if the style has
 * none
 */
async function fail<Out extends Chunk>(
  { call, context, deps }: Opened<Out>,
  reply: StreamReply<Out>,
  { error, sink, connection, costReport }: FailureContext<Out>,
): Promise<void> {
  const reported = reply.failure ?? toGatewayError(error, context.signal);
  const event = reply.isDone ? undefined : reply.errorEvent(reported);
  if (event?.length === 0) throw reported;
  connection.client.endFailed(reported, reply.isDone);
  logFailure(call, reported, deps.log);
  if (event === undefined || call.ending === CallEnding.COMPLETED) return;
  if (costReport !== undefined) await send(sink, costReport.abandon());
  await sink.chunk(event);
}

interface HeadFacts {
  readonly length: number | undefined;
  readonly dropped: readonly string[];
  readonly isDetached: boolean;
  /**
   * Cost of the call in USD; absent if the caller did not request it, or if it is still unknown.
   */
  readonly cost?: string | undefined;
}

function headOf<Out extends Chunk>(
  { call, request, planned, answer }: Opened<Out>,
  { length, dropped, isDetached, cost }: HeadFacts,
): SinkHead {
  const { status, headers: upstream } = answer;
  if (!isDetached) call.status = status;
  const isRelayed = planned.dialect === request.dialect && !request.isRewritten;
  const headers = request.headers({ upstream, length, dropped, isRelayed });
  if (planned.name !== undefined) headers["x-uas-route"] = planned.name;
  if (cost !== undefined) headers["x-uas-cost"] = cost;
  if (call.limitHeaders !== undefined) Object.assign(headers, call.limitHeaders);
  return { status, headers, dropped };
}
