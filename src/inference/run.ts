/** One run of an exchange: its state, and its phases as methods. */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { GatewayStopping } from "../caller.ts";
import type { ModelConfig } from "../config/config.ts";
import { replyBytesMax, stateWaitMs } from "../config/limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import type { VendorCall } from "../vendor/vendor.ts";
import { Call } from "./call.ts";
import type { ExchangeContext, ExchangeOptions, RunStart } from "./run-options.ts";
import type { AskedText, Chunk, Door, PlannedRoute, PreparedCall, ReplyStream } from "./door.ts";
import { estimateTokens, meter } from "./metering.ts";
import { incapable, insufficient, toldOf, unusable } from "./failures.ts";
import { upstreamRequestId } from "./headers.ts";
import { explainFailure, explainUnkept, reportCall } from "./report.ts";
import { failureError } from "./upstream-refusal.ts";
import type { OpenReply } from "./upstream.ts";
import { within } from "./within.ts";

/** The state of one run; its methods are the phases. */
export class Run<Out extends Chunk> {
  readonly call: Call;
  isHeadOut = false;

  readonly #options: ExchangeOptions;
  readonly #door: Door<Out>;
  readonly #context: ExchangeContext;
  #text: AskedText | undefined;
  #model: ModelConfig | undefined;
  #routes: readonly PlannedRoute[] = [];
  /** The request for the first route: what is wrong with it must be known before money is held. */
  #first: PreparedCall | undefined;
  #dropped: readonly string[] = [];
  #open: OpenReply | undefined;
  #whole: Out | undefined;
  #wholeLength: number | undefined;
  #reported: Usage | undefined;
  #textBytes = 0;
  #stream: ReplyStream<Out> | undefined;
  /** The terminal event is out: whatever happens now, the client has everything. */
  #isDone = false;

  constructor(options: ExchangeOptions, door: Door<Out>, start: RunStart) {
    this.#options = options;
    this.#door = door;
    this.#context = start.context;
    const { caller, requestId } = start.context;
    const { accountId, keyId } = caller;
    this.call = new Call({ id: start.callId, requestId, accountId, keyId, path: door.path });
  }

  /** What the vendor's style could not carry of the request. */
  get dropped(): readonly string[] {
    return this.#dropped;
  }

  /** Reads the request as far as needed and finds the model. */
  async read(): Promise<void> {
    const text = this.#door.read();
    this.#text = text;
    this.call.stream = text.stream;
    this.call.model = text.model;
    const model = this.#options.catalogue.authorize(this.#context.caller, text.model);
    this.#model = model;
    const { dialect, operation } = this.#door;
    this.#routes = this.#options.upstream.plan(model, dialect, operation);
    const recalled = this.#door.recall?.(this.#routes);
    if (recalled !== undefined) {
      ({ routes: this.#routes, text: this.#text } = await within(stateWaitMs, recalled));
    }
    const [first] = this.#routes;
    if (first === undefined) throw incapable(model.key);
    if (first.dialect !== undefined) this.#first = this.#door.prepare(model, first);
  }

  /** Sets the most aside that the call can cost. */
  async hold(): Promise<void> {
    const { text, model } = this.#known();
    const { pricing, ledger, metrics } = this.#options;
    const output = (text.maxOutputTokens ?? model.maxOutputTokens) * text.choices;
    const amountNanos = pricing.hold(model, { input: estimateTokens(text.bytes), output });
    const { id, accountId } = this.call.start;
    const verdict = await ledger.hold({ id, accountId, amountNanos });
    if (!verdict.admitted) {
      metrics.refusedForBalance.inc();
      throw insufficient(amountNanos, verdict.availableNanos);
    }
    this.call.heldNanos = amountNanos;
    this.call.priceVersion = pricing.version(model);
  }

  /** Asks the model's vendors until one answers. A reply that is not streamed is read whole here, so
   * that a broken one is still an error and not half a reply. */
  async ask(): Promise<void> {
    this.#open = await this.#options.upstream.open({
      routes: this.#routes,
      operation: this.#door.operation,
      onAttempt: (vendor) => this.call.asked(vendor),
      callFor: (planned) => this.#callFor(planned),
    });
    const { reply, refusal, planned } = this.#open;
    this.call.upstreamRequestId = upstreamRequestId(reply.headers);
    if (refusal !== undefined) {
      this.call.status = reply.status;
      this.call.end(CallEnding.UPSTREAM_REFUSED, refusal.error);
      const told = this.#door.refusal({ ...refusal, status: reply.status }, planned);
      if (told instanceof GatewayError) throw told;
      this.#setWhole(told);
      return;
    }
    const type = reply.headers["content-type"] ?? "";
    const encoding = reply.headers["content-encoding"] ?? "identity";
    if (encoding !== "identity") throw unusable(`content-encoding ${encoding}, not asked for`);
    if (type.startsWith("text/event-stream")) {
      // Now, so that a door which reads no streams can still refuse.
      this.#replyStream();
      return;
    }
    if (!type.includes("json")) throw unusable(`content-type ${type || "(none)"}`);
    const whole = await reply.body.whole(replyBytesMax);
    this.call.answered();
    if (whole[0] !== 0x7b && !whole.toString("latin1", 0, 64).trimStart().startsWith("{")) {
      throw unusable("a body that is no JSON object");
    }
    const { body, usage, textBytes } = this.#door.whole(whole, planned);
    this.#reported = usage;
    this.#textBytes = textBytes;
    this.#setWhole(body);
  }

  #callFor(planned: PlannedRoute): VendorCall {
    const { text, model } = this.#known();
    const isFirst = planned === this.#routes[0];
    const prepared = (isFirst && this.#first) || this.#door.prepare(model, planned);
    this.#dropped = prepared.dropped;
    return {
      dialect: planned.dialect ?? Dialect.UNSPECIFIED,
      model: planned.route.model,
      query: planned.dialect === this.#door.dialect ? this.#door.query : "",
      headers: prepared.headers,
      body: prepared.body,
      stream: text.stream,
      signal: this.#context.signal,
    };
  }

  #setWhole(body: Out): void {
    this.#whole = body;
    this.#wholeLength = body.length;
  }

  /** What the client's reply begins with. */
  head(): { readonly status: number; readonly headers: Record<string, string> } {
    const { reply, planned } = this.#opened();
    this.isHeadOut = true;
    this.call.status = reply.status;
    const headers = this.#door.headers({
      upstream: reply.headers,
      length: this.#wholeLength,
      dropped: this.#dropped,
      isRelayed: planned.dialect === this.#door.dialect,
    });
    return { status: reply.status, headers };
  }

  /** Resolves to whether there are bytes to {@link take}; false at the end. */
  ready(): Promise<boolean> {
    if (this.#whole !== undefined) {
      return Promise.resolve(!this.#isDone && this.#whole.length > 0);
    }
    if (this.#stream?.failed) {
      this.call.end(CallEnding.UPSTREAM_FAILED, failureError("reset", undefined));
      return Promise.resolve(false);
    }
    return this.#opened().reply.body.ready();
  }

  /** What has come for the client; empty where no event is complete yet. */
  take(): Out {
    if (this.#whole !== undefined) {
      this.#isDone = true;
      return this.#whole;
    }
    const stream = this.#replyStream();
    const passed = stream.push(this.#opened().reply.body.take());
    this.#track(stream);
    if (passed.length > 0) this.call.answered();
    return passed;
  }

  /** Keeps what a later request may refer to, once `last` ends the reply. `undefined`: there is nothing. A
   * reply is not worth less for it: what fails here is for the log. */
  keep(last: Out): Promise<void> | undefined {
    return this.#isDone ? this.#keep(last) : undefined;
  }

  async #keep(last: Out): Promise<void> {
    try {
      const kept = this.#door.keep?.(last, this.#opened().planned);
      if (kept !== undefined) await within(stateWaitMs, kept);
    } catch (error) {
      explainUnkept(this.call, error, this.#options.log);
    }
  }

  /** What is left for the client once {@link ready} has said no; `undefined`: nothing. Throws where the
   * stream was cut. */
  rest(): Out | undefined {
    if (this.#whole !== undefined || this.#stream?.failed) return undefined;
    const stream = this.#replyStream();
    const last = stream.end();
    this.#track(stream);
    if (last.length > 0) return last;
    // The connection closed in good order, but had the vendor said that it was done?
    if (!stream.finished) throw new HttpFailure("reset", "the stream was cut");
    return undefined;
  }

  /** The event that ends a stream which failed; empty: the caller is told by the failure itself. */
  errorEvent(told: GatewayError): Out {
    return this.#replyStream().errorEvent(told);
  }

  #replyStream(): ReplyStream<Out> {
    return (this.#stream ??= this.#door.stream(this.#opened().planned));
  }

  #track({ usage, textBytes, done }: ReplyStream<Out>): void {
    this.#reported = usage;
    this.#textBytes = textBytes;
    this.#isDone = done;
  }

  /** Names the ending of a call that failed, and what its client is told. */
  fail(error: unknown): GatewayError {
    const { call } = this;
    const told = toldOf(error, this.#context.signal);
    const { signal } = this.#context;
    if (this.#isDone) {
      call.end(CallEnding.COMPLETED);
    } else if (signal.aborted) {
      const isStop = signal.reason instanceof GatewayStopping;
      if (!isStop && call.status === 0) call.status = 499;
      call.end(
        isStop ? CallEnding.GATEWAY_STOPPED : CallEnding.CLIENT_GONE,
        isStop ? told : undefined,
      );
    } else if (call.heldNanos === undefined) {
      call.end(CallEnding.REFUSED, told);
    } else {
      const isOurs = told.code === ErrorCode.INTERNAL_ERROR;
      call.end(isOurs ? CallEnding.GATEWAY_FAILED : CallEnding.UPSTREAM_FAILED, told);
    }
    explainFailure(call, told, this.#options.log);
    return told;
  }

  /** Charges what was delivered, frees the rest, writes the record. Runs however the call ended. */
  async settle(): Promise<void> {
    const { call } = this;
    this.#open?.close();
    call.dropped = [...new Set([...this.#dropped, ...this.#door.droppedOfReply])];
    // The reader went away between two reads, or did not read while the gateway stopped: nobody threw.
    const isStop = this.#context.signal.reason instanceof GatewayStopping;
    const unread = isStop ? CallEnding.GATEWAY_STOPPED : CallEnding.CLIENT_GONE;
    call.end(this.#isDone ? CallEnding.COMPLETED : unread);
    if (call.heldNanos === undefined) {
      this.#options.ledger.record(call.toRow());
      reportCall(call, this.#options);
      return;
    }
    const { text, model } = this.#known();
    const { usage, source, isCharged } = (this.#door.meter ?? meter)({
      reported: this.#reported,
      requestBytes: text.bytes,
      textBytes: this.#textBytes,
      isWhole: call.ending === CallEnding.COMPLETED,
      wantsText: text.maxOutputTokens !== 0,
    });
    call.usage = usage;
    call.usageSource = source;
    if (isCharged && usage) call.costNanos = this.#options.pricing.cost(model, usage);
    const { id, accountId } = call.start;
    const { costNanos } = call;
    reportCall(call, this.#options);
    await this.#options.ledger.settle({ id, accountId, costNanos, record: call.toRow() });
  }

  #known(): { text: AskedText; model: ModelConfig } {
    if (this.#text === undefined || this.#model === undefined) throw new Error("not read yet");
    return { text: this.#text, model: this.#model };
  }

  #opened(): OpenReply {
    if (this.#open === undefined) throw new Error("not asked yet");
    return this.#open;
  }
}
