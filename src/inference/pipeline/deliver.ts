/** Delivers a reply to its caller: relayed or translated, metered, and monitored against its hold. */
import { StreamReply } from "./reply.ts";
import { chargeToDate, logFailure, logStoreFailure, type Delivery } from "./settle.ts";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { stateWaitMs } from "../../config/limits.ts";
import { withTimeout } from "../../core/async.ts";
import type { Sink, SinkHead } from "../../core/sink.ts";
import type { Chunk } from "./adapter.ts";
import { toGatewayError } from "./failures.ts";
import { HoldMonitor } from "./hold-monitor.ts";
import type { Connection, Opened } from "./open.ts";
import { coverReply } from "./overrun.ts";
import { CostReport } from "./cost-report.ts";

/**
 * Delivers a reply. A failed stream ends with the error event of its style; where the style has none, the failure is
 * thrown.
 *
 * @throws GatewayError
 */
export async function deliver<Out extends Chunk>(
  opened: Opened<Out>,
  sink: Sink<Out>,
  { connection, delivery }: { readonly connection: Connection; readonly delivery: Delivery },
): Promise<void> {
  const { call, reply } = opened;
  const { client, dropped } = connection;
  const writer = opened.request.costWriter();
  const costReport = writer && new CostReport(opened, writer, { connection, delivery });
  if (reply.kind === "stream") {
    const { stream } = reply;
    delivery.monitor = monitored(opened, stream);
    const head = headOf(opened, { length: undefined, dropped, isDetached: client.isDetached });
    try {
      if (!client.isDetached) {
        sink.head(head);
        await relay(opened, stream, { sink, monitor: delivery.monitor, connection, costReport });
      }
      if (client.isDetached) await drain(stream, delivery.monitor);
    } catch (error) {
      await fail(opened, stream, { error, sink, connection, costReport });
    } finally {
      delivery.isDone = stream.isDone;
    }
    return;
  }
  let out = reply.kind === "whole" ? reply.whole.body : reply.body;
  let cost: string | undefined;
  if (client.isDetached) return;
  if (reply.kind === "whole") {
    await cover(opened, reply.whole.usage, delivery);
    await store(opened, out);
    if (costReport !== undefined) ({ body: out, cost } = await costReport.whole(out));
  }
  const head = headOf(opened, { length: out.length, dropped, isDetached: false, cost });
  sink.whole(head, out);
  call.relayed();
  delivery.isDone = true;
}

/** Covers a complete reply that exceeds its output limit before it is sent; the hold covers any other (R-MON-12). */
async function cover<Out extends Chunk>(
  opened: Opened<Out>,
  usage: Usage | undefined,
  delivery: Delivery,
): Promise<void> {
  if (usage === undefined || usage.outputTokens <= opened.plan.maxTokens) return;
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
    costOf: (usage) => pricing.cost(price, { ...usage, ...call.units }, call.discountBp),
  });
  streams.add(monitor);
  return monitor;
}

interface RelayContext<Out extends Chunk> {
  readonly sink: Sink<Out>;
  readonly monitor: HoldMonitor;
  readonly connection: Connection;
  /** Reports the cost; `undefined`: the caller did not ask for it. */
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
        const out = reply.take();
        monitor.onRead();
        if (out.length === 0) continue;
        call.relayed();
        if (isLast(opened, reply)) await store(opened, out);
        const full = costReport
          ? send(sink, await costReport.pass(out, reply.isDone))
          : sink.chunk(out);
        if (full !== undefined) await full;
        if (client.isDetached) return;
      }
    } catch (error) {
      // A stopped vendor breaks off its connection.
      if (!reply.isStopped) throw error;
    }
    if (client.isDetached) return;
    const rest = reply.rest();
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

/** Sends what there is: an empty piece would end the reply. */
function send<Out extends Chunk>(sink: Sink<Out>, out: Out): Promise<void> | undefined {
  return out.length === 0 ? undefined : sink.chunk(out);
}

/** Whether the client has the whole reply now. A stopped vendor has stored nothing that a request could refer to. */
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
      reply.take();
      monitor.onRead();
    }
    reply.rest();
  } catch {
    // The usage so far is known, and there is no client to report a failure to.
  }
}

/** Stores what a later request may refer to. A failure is only logged: the reply itself is complete. */
async function store<Out extends Chunk>(
  { call, request, planned, deps }: Opened<Out>,
  last: Out,
): Promise<void> {
  try {
    const stored = request.keep(last, planned);
    if (stored !== undefined) await withTimeout(stateWaitMs, stored);
  } catch (error) {
    logStoreFailure(call, error, deps.log);
  }
}

interface FailureContext<Out extends Chunk> extends Omit<RelayContext<Out>, "monitor"> {
  readonly error: unknown;
}

/** Ends a stream that failed with its style's error event. @throws GatewayError where the style has none */
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
  /** What the call costs in USD; absent: the caller did not ask, or it is not known yet. */
  readonly cost?: string | undefined;
}

function headOf<Out extends Chunk>(
  { call, request, planned, answer }: Opened<Out>,
  { length, dropped, isDetached, cost }: HeadFacts,
): SinkHead {
  const { status, headers: upstream } = answer;
  if (!isDetached) call.status = status;
  const isRelayed = planned.dialect === request.dialect;
  const headers = request.headers({ upstream, length, dropped, isRelayed });
  if (planned.name !== undefined) headers["x-uas-route"] = planned.name;
  if (cost !== undefined) headers["x-uas-cost"] = cost;
  if (call.limitHeaders !== undefined) Object.assign(headers, call.limitHeaders);
  return { status, headers, dropped };
}
