/** Delivers a reply to its caller: relayed or translated, metered, and monitored against its hold. */
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { UnitUsage } from "../../billing/prices/price.ts";
import { stateWaitMs, replyBytesMax } from "../../config/limits.ts";
import { withTimeout } from "../../core/async.ts";
import type { GatewayError } from "../../core/errors.ts";
import type { Sink, SinkHead } from "../../core/sink.ts";
import { HttpFailure } from "../../http/failure.ts";
import type { VendorBody, VendorReply } from "../../vendor/vendor.ts";
import { failureError } from "../upstream-refusal.ts";
import type { Chunk, ReplyStream } from "./adapter.ts";
import type { Call } from "./call.ts";
import { toGatewayError, unusableReply } from "./failures.ts";
import { HoldMonitor } from "./hold-monitor.ts";
import type { Connection, Opened } from "./open.ts";
import { coverReply } from "./overrun.ts";
import { ToldCost } from "./told-cost.ts";
import { chargeToDate, logFailure, logStoreFailure } from "./settle.ts";

/** The progress of a delivery, for the settlement. */
export interface Delivery {
  /** Whether the client has the whole reply. */
  isDone: boolean;
  /** Whether a complete reply is withheld because it cannot be paid for: nothing is charged. */
  isWithheld: boolean;
  /** Whether the caller has been told the cost: it is final. */
  isCostTold: boolean;
  /** The monitor of a stream; `undefined`: the reply is none. */
  monitor: HoldMonitor | undefined;
}

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
  const told = writer && new ToldCost(opened, writer, { connection, delivery });
  if (reply.kind === "stream") {
    const { stream } = reply;
    delivery.monitor = monitored(opened, stream);
    const head = headOf(opened, { length: undefined, dropped, isDetached: client.isDetached });
    try {
      if (!client.isDetached) {
        sink.head(head);
        await relay(opened, stream, { sink, monitor: delivery.monitor, connection, told });
      }
      if (client.isDetached) await drain(stream, delivery.monitor);
    } catch (error) {
      await fail(opened, stream, { error, sink, connection, told });
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
    if (told !== undefined) ({ body: out, cost } = await told.whole(out));
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
  /** Tells the cost; `undefined`: nobody asked for it. */
  readonly told: ToldCost<Out> | undefined;
}

/** Sends the stream to the caller until it ends or the client disconnects. */
async function relay<Out extends Chunk>(
  opened: Opened<Out>,
  reply: StreamReply<Out>,
  { sink, monitor, connection: { client }, told }: RelayContext<Out>,
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
        const full = told ? send(sink, await told.pass(out, reply.isDone)) : sink.chunk(out);
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
      if (told !== undefined) await send(sink, await told.end());
      call.end(CallEnding.COMPLETED);
      return;
    }
    if (isLast(opened, reply)) await store(opened, rest);
    const full = told ? send(sink, await told.pass(rest, reply.isDone)) : sink.chunk(rest);
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
  { error, sink, connection, told }: FailureContext<Out>,
): Promise<void> {
  const reported = reply.failure ?? toGatewayError(error, context.signal);
  const event = reply.isDone ? undefined : reply.errorEvent(reported);
  if (event?.length === 0) throw reported;
  connection.client.endFailed(reported, reply.isDone);
  logFailure(call, reported, deps.log);
  if (event === undefined || call.ending === CallEnding.COMPLETED) return;
  if (told !== undefined) await send(sink, told.abandon());
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
  if (cost !== undefined) headers["x-uas-cost"] = cost;
  return { status, headers, dropped };
}

/** Options of {@link StreamReply}. */
interface StreamReplyOptions<Out> {
  readonly call: Call;
  readonly stream: ReplyStream<Out>;
  readonly body: VendorBody;
}

/** How the gateway ended a reply: at its limit with a usage, or with a failure. */
type Cut = { readonly usage: Usage | undefined } | { readonly failure: GatewayError };

/**
 * A vendor's streamed reply, which the gateway can end early. Read it as
 * `while (await reply.ready()) use(reply.take())`, then {@link rest}.
 */
export class StreamReply<Out extends Chunk> {
  readonly #call: Call;
  readonly #stream: ReplyStream<Out>;
  readonly #body: VendorBody;
  #cut: Cut | undefined;
  #isStopSent = false;

  constructor({ call, stream, body }: StreamReplyOptions<Out>) {
    this.#call = call;
    this.#stream = stream;
    this.#body = body;
  }

  /** The usage that the vendor reported so far. */
  get usage(): Usage | undefined {
    return this.#stream.usage;
  }

  /** Bytes of generated text so far. */
  get textBytes(): number {
    return this.#stream.textBytes;
  }

  /** Billable units other than tokens so far. */
  get units(): UnitUsage | undefined {
    return this.#stream.units;
  }

  /** Whether the terminal event was sent: the client has the whole reply. */
  get isDone(): boolean {
    return this.#stream.done;
  }

  /** Whether the vendor ended the reply itself, completely or with a failure. */
  get isOver(): boolean {
    return this.#stream.finished || this.#stream.failed;
  }

  /** Whether the vendor sent the whole reply. */
  get isComplete(): boolean {
    return this.#stream.finished;
  }

  /** Whether the gateway ended the reply at its limit. */
  get isStopped(): boolean {
    return this.#cut !== undefined && "usage" in this.#cut;
  }

  /** The failure with which the gateway ended the reply; `undefined`: it did not. */
  get failure(): GatewayError | undefined {
    return this.#cut !== undefined && "failure" in this.#cut ? this.#cut.failure : undefined;
  }

  /** Ends the reply as if it had reached its token limit: the vendor is stopped, {@link rest} returns the end. */
  stop(usage: Usage | undefined): void {
    this.#end({ usage });
  }

  /** Ends the reply with a failure: {@link ready} rejects. */
  fail(failure: GatewayError): void {
    this.#end({ failure });
  }

  /** Resolves to true when there is something to {@link take}, to false at the end. */
  ready(): Promise<boolean> {
    if (this.#cut !== undefined) {
      return this.failure ? Promise.reject(this.failure) : Promise.resolve(false);
    }
    if (this.#stream.failed) {
      this.#call.end(CallEnding.UPSTREAM_FAILED, failureError("reset", undefined));
      return Promise.resolve(false);
    }
    return this.#body.ready();
  }

  /** Returns the received piece for the client; empty where no event is complete yet. */
  take(): Out {
    const chunk = this.#stream.push(this.#body.take());
    if (chunk.length > 0) this.#call.answered();
    return chunk;
  }

  /** Returns the rest for the client once {@link ready} resolved to false; `undefined`: nothing.
   * @throws HttpFailure where the stream was cut */
  rest(): Out | undefined {
    const stream = this.#stream;
    if (this.#cut !== undefined && "usage" in this.#cut) {
      if (this.#isStopSent) return undefined;
      this.#isStopSent = true;
      return stream.stop(this.#cut.usage);
    }
    if (stream.failed) return undefined;
    const last = stream.end();
    if (last.length > 0) return last;
    // The connection closed cleanly, but without a terminal event the reply is incomplete.
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
    return undefined;
  }

  /** The event that ends a failed stream; empty where the failure is thrown instead. */
  errorEvent(reported: GatewayError): Out {
    return this.#stream.errorEvent(reported);
  }

  #end(cut: Cut): void {
    if (this.#cut !== undefined || this.isOver) return;
    this.#cut = cut;
    // Wakes the pending read.
    this.#body.cancel();
  }
}

/**
 * Reads the body of a vendor's complete reply; `undefined`: the reply is streamed. The body is read before its head is
 * sent, so that a cut body becomes an error and not half a reply.
 *
 * @param isStreamed default: whether the content type is `text/event-stream`
 * @throws GatewayError UPSTREAM_ERROR where the body is neither JSON nor an event stream
 * @throws HttpFailure where the body was cut
 */
export async function readCompleteBody(
  { headers, body }: VendorReply,
  isStreamed = (headers["content-type"] ?? "").startsWith("text/event-stream"),
): Promise<Buffer | undefined> {
  const type = headers["content-type"] ?? "";
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw unusableReply(`content-encoding ${encoding}, not requested`);
  if (isStreamed) return undefined;
  if (!type.includes("json")) throw unusableReply(`content-type ${type || "(none)"}`);
  const whole = await body.whole(replyBytesMax);
  if (whole[0] !== 0x7b && !whole.toString("latin1", 0, 64).trimStart().startsWith("{")) {
    throw unusableReply("a body that is no JSON object");
  }
  return whole;
}
