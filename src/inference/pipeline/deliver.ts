/** Passes a reply on to its caller: relayed or translated, metered, and monitored against its hold. */
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
import { toldOf, unusable } from "./failures.ts";
import { HoldMonitor } from "./hold-monitor.ts";
import type { Connection, Opened } from "./open.ts";
import { coverReply } from "./overrun.ts";
import { ToldCost } from "./told-cost.ts";
import { explainFailure, explainUnkept, chargeToDate } from "./settle.ts";

/** How far the delivery of a reply is: what its settlement needs to know. */
export interface Delivery {
  /** Whether the client has the whole reply. */
  isDone: boolean;
  /** Whether a whole reply is kept back because it cannot be paid for: nothing is charged. */
  isWithheld: boolean;
  /** Whether the caller has been told the cost: it is final. */
  isCostTold: boolean;
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
  const writer = opened.request.costWriter();
  const told = writer && new ToldCost(opened, writer, { connection, delivery });
  if (reply.kind === "stream") {
    const { stream } = reply;
    delivery.monitor = monitored(opened, stream);
    const head = headOf(opened, { length: undefined, dropped, isDetached: client.isDetached });
    try {
      if (!client.isDetached) {
        sink.head(head);
        await pass(opened, stream, { sink, monitor: delivery.monitor, connection, told });
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
    await keep(opened, out);
    if (told !== undefined) ({ body: out, cost } = await told.whole(out));
  }
  const head = headOf(opened, { length: out.length, dropped, isDetached: false, cost });
  sink.whole(head, out);
  call.passed();
  delivery.isDone = true;
}

/** A reply within its limit is covered by its hold; one that is longer must be before it goes out (R-MON-12). */
async function cover<Out extends Chunk>(
  opened: Opened<Out>,
  usage: Usage | undefined,
  delivery: Delivery,
): Promise<void> {
  if (usage === undefined || usage.outputTokens <= opened.plan.mostTokens) return;
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

interface Passing<Out extends Chunk> {
  readonly sink: Sink<Out>;
  readonly monitor: HoldMonitor;
  readonly connection: Connection;
  /** Tells the cost; `undefined`: nobody asked for it. */
  readonly told: ToldCost<Out> | undefined;
}

/** Passes the stream on until its end, or until its client has disconnected. */
async function pass<Out extends Chunk>(
  opened: Opened<Out>,
  reply: StreamReply<Out>,
  { sink, monitor, connection: { client }, told }: Passing<Out>,
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
        const full = told ? send(sink, await told.pass(out, reply.isDone)) : sink.chunk(out);
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
      if (told !== undefined) await send(sink, await told.end());
      call.end(CallEnding.COMPLETED);
      return;
    }
    if (isLast(opened, reply)) await keep(opened, rest);
    const full = told ? send(sink, await told.pass(rest, reply.isDone)) : sink.chunk(rest);
    if (full !== undefined) await full;
  }
}

/** Sends what there is: an empty piece would end the reply. */
function send<Out extends Chunk>(sink: Sink<Out>, out: Out): Promise<void> | undefined {
  return out.length === 0 ? undefined : sink.chunk(out);
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
  { error, sink, connection, told: toldCost }: Failing<Out>,
): Promise<void> {
  const told = reply.failure ?? toldOf(error, context.signal);
  const event = reply.isDone ? undefined : reply.errorEvent(told);
  if (event?.length === 0) throw told;
  connection.client.endFailed(told, reply.isDone);
  explainFailure(call, told, deps.log);
  if (event === undefined || call.ending === CallEnding.COMPLETED) return;
  if (toldCost !== undefined) await send(sink, toldCost.abandon());
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

/* A vendor's streamed reply on its way to the caller. */

/** What a {@link StreamReply} needs. */
interface StreamReplyOptions<Out> {
  readonly call: Call;
  readonly stream: ReplyStream<Out>;
  readonly body: VendorBody;
}

/** How the gateway ended a reply: with which usage, or with which failure. */
type Cut = { readonly usage: Usage | undefined } | { readonly failure: GatewayError };

/**
 * Reads the vendor, and ends the reply before its vendor does where it must. Read as
 * `while (await reply.ready()) use(reply.take())`, then {@link rest}.
 */
export class StreamReply<Out extends Chunk> {
  readonly #call: Call;
  readonly #stream: ReplyStream<Out>;
  readonly #body: VendorBody;
  #cut: Cut | undefined;
  #isStopTold = false;

  constructor({ call, stream, body }: StreamReplyOptions<Out>) {
    this.#call = call;
    this.#stream = stream;
    this.#body = body;
  }

  /** What the vendor reported so far. */
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

  /** Whether its terminal event is out: nothing can be missing any more. */
  get isDone(): boolean {
    return this.#stream.done;
  }

  /** Whether the vendor ended the reply itself, well or not. */
  get isOver(): boolean {
    return this.#stream.finished || this.#stream.failed;
  }

  /** Whether all of it has come from the vendor. */
  get isComplete(): boolean {
    return this.#stream.finished;
  }

  /** Whether the gateway ended it as one that reached its limit. */
  get isStopped(): boolean {
    return this.#cut !== undefined && "usage" in this.#cut;
  }

  /** Why the gateway broke it off; `undefined`: it did not. */
  get failure(): GatewayError | undefined {
    return this.#cut !== undefined && "failure" in this.#cut ? this.#cut.failure : undefined;
  }

  /** Ends it as one that reached its token limit: the vendor is stopped, {@link rest} ends the reply. */
  stop(usage: Usage | undefined): void {
    this.#end({ usage });
  }

  /** Ends it as one that failed: {@link ready} rejects. */
  fail(failure: GatewayError): void {
    this.#end({ failure });
  }

  /** Resolves to whether there is something to {@link take}; false at the end. */
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

  /** What has come for the client; empty where no event is complete yet. */
  take(): Out {
    const passed = this.#stream.push(this.#body.take());
    if (passed.length > 0) this.#call.answered();
    return passed;
  }

  /** What is left for the client once {@link ready} has said no; `undefined`: nothing. Throws where the
   * stream was cut. */
  rest(): Out | undefined {
    const stream = this.#stream;
    if (this.#cut !== undefined && "usage" in this.#cut) {
      if (this.#isStopTold) return undefined;
      this.#isStopTold = true;
      return stream.stop(this.#cut.usage);
    }
    if (stream.failed) return undefined;
    const last = stream.end();
    if (last.length > 0) return last;
    // The connection closed in good order, but had the vendor said that it was done?
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
    return undefined;
  }

  /** The event that ends a stream which failed; empty: the caller is told by the failure itself. */
  errorEvent(told: GatewayError): Out {
    return this.#stream.errorEvent(told);
  }

  #end(cut: Cut): void {
    if (this.#cut !== undefined || this.isOver) return;
    this.#cut = cut;
    // Wakes whoever waits for the vendor.
    this.#body.cancel();
  }
}

/**
 * The body of a vendor's complete reply; `undefined`: it is streamed. A complete one is read before its head is passed
 * on, so that a broken one is still an error and not half a reply.
 *
 * @param isStreamed default: where its content type is that of a stream of events
 * @throws GatewayError UPSTREAM_ERROR where it is neither JSON nor a stream of events
 * @throws HttpFailure where it was cut
 */
export async function readAnswer(
  { headers, body }: VendorReply,
  isStreamed = (headers["content-type"] ?? "").startsWith("text/event-stream"),
): Promise<Buffer | undefined> {
  const type = headers["content-type"] ?? "";
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity") throw unusable(`content-encoding ${encoding}, not asked for`);
  if (isStreamed) return undefined;
  if (!type.includes("json")) throw unusable(`content-type ${type || "(none)"}`);
  const whole = await body.whole(replyBytesMax);
  if (whole[0] !== 0x7b && !whole.toString("latin1", 0, 64).trimStart().startsWith("{")) {
    throw unusable("a body that is no JSON object");
  }
  return whole;
}
