/** Passes a reply on to its caller: relayed or translated, metered, and monitored against its hold. */
import { CallEnding } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { stateWaitMs } from "../../config/limits.ts";
import { withTimeout } from "../with-timeout.ts";
import type { Chunk } from "./adapter.ts";
import { toldOf } from "./failures.ts";
import { HoldMonitor } from "./hold-monitor.ts";
import type { Connection, Opened } from "./open.ts";
import { explainFailure, explainUnkept } from "./report.ts";
import { chargeToDate } from "./settle.ts";
import type { Sink, SinkHead } from "../../sink.ts";
import type { StreamReply } from "./stream-reply.ts";

/** How far the delivery of a reply is: what its settlement needs to know. */
export interface Delivery {
  /** Whether the client has the whole reply. */
  isDone: boolean;
  /** The monitor of a stream; `undefined`: the reply is none. */
  monitor: HoldMonitor | undefined;
}

/**
 * Delivers. A failure of a stream is told by its error event, where its style has one; else it is thrown.
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
  if (reply.kind === "stream") {
    const { stream } = reply;
    delivery.monitor = monitored(opened, stream);
    const head = headOf(opened, { length: undefined, dropped, isDetached: client.isDetached });
    try {
      if (!client.isDetached) {
        sink.head(head);
        await pass(opened, stream, { sink, monitor: delivery.monitor, connection });
      }
      if (client.isDetached) await drain(stream, delivery.monitor);
    } catch (error) {
      await fail(opened, stream, { error, sink, connection });
    } finally {
      delivery.isDone = stream.isDone;
    }
    return;
  }
  const out = reply.kind === "whole" ? reply.whole.body : reply.body;
  const head = headOf(opened, { length: out.length, dropped, isDetached: client.isDetached });
  if (client.isDetached) return;
  if (reply.kind === "whole") await keep(opened, out);
  sink.whole(head, out);
  call.passed();
  delivery.isDone = true;
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

interface Passing<Out extends Chunk> {
  readonly sink: Sink<Out>;
  readonly monitor: HoldMonitor;
  readonly connection: Connection;
}

/** Passes the stream on until its end, or until its client has disconnected. */
async function pass<Out extends Chunk>(
  opened: Opened<Out>,
  reply: StreamReply<Out>,
  { sink, monitor, connection: { client } }: Passing<Out>,
): Promise<void> {
  const { call } = opened;
  for (;;) {
    try {
      while (await reply.ready()) {
        const out = reply.take();
        monitor.onRead();
        if (out.length === 0) continue;
        call.passed();
        if (isLast(opened, reply)) await keep(opened, out);
        const full = sink.chunk(out);
        if (full !== undefined) await full;
        if (client.isDetached) return;
      }
    } catch (error) {
      // The vendor broke off because it was told to.
      if (!reply.isStopped) throw error;
    }
    if (client.isDetached) return;
    const rest = reply.rest();
    if (rest === undefined) {
      call.end(CallEnding.COMPLETED);
      return;
    }
    if (isLast(opened, reply)) await keep(opened, rest);
    const full = sink.chunk(rest);
    if (full !== undefined) await full;
  }
}

/** Whether the client has the whole reply now. A vendor that was stopped has kept nothing that could be referred to. */
function isLast<Out extends Chunk>(
  { planned, request }: Opened<Out>,
  reply: StreamReply<Out>,
): boolean {
  return reply.isDone || (reply.isStopped && planned.dialect !== request.dialect);
}

/** Reads what is still to come, for its usage. */
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
    // What came until then is known, and there is nobody to be told.
  }
}

/** Keeps what a later request may refer to. A reply is not worth less for it: a failure goes to the log. */
async function keep<Out extends Chunk>(
  { call, request, planned, deps }: Opened<Out>,
  last: Out,
): Promise<void> {
  try {
    const kept = request.keep(last, planned);
    if (kept !== undefined) await withTimeout(stateWaitMs, kept);
  } catch (error) {
    explainUnkept(call, error, deps.log);
  }
}

interface Failing<Out extends Chunk> extends Omit<Passing<Out>, "monitor"> {
  readonly error: unknown;
}

/** Ends a stream that failed with its style's error event. @throws GatewayError where the style has none */
async function fail<Out extends Chunk>(
  { call, context, deps }: Opened<Out>,
  reply: StreamReply<Out>,
  { error, sink, connection }: Failing<Out>,
): Promise<void> {
  const told = reply.failure ?? toldOf(error, context.signal);
  const event = reply.isDone ? undefined : reply.errorEvent(told);
  if (event?.length === 0) throw told;
  connection.client.endFailed(told, reply.isDone);
  explainFailure(call, told, deps.log);
  if (event !== undefined && call.ending !== CallEnding.COMPLETED) await sink.chunk(event);
}

interface HeadFacts {
  readonly length: number | undefined;
  readonly dropped: readonly string[];
  readonly isDetached: boolean;
}

function headOf<Out extends Chunk>(
  { call, request, planned, answer }: Opened<Out>,
  { length, dropped, isDetached }: HeadFacts,
): SinkHead {
  const { status, headers: upstream } = answer;
  if (!isDetached) call.status = status;
  const isRelayed = planned.dialect === request.dialect;
  const headers = request.headers({ upstream, length, dropped, isRelayed });
  return { status, headers, dropped };
}
