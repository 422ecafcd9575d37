/** One run of an exchange: its state, and its phases as methods. */
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { GatewayStopping } from "../caller.ts";
import type { ModelConfig } from "../config/config.ts";
import { stateWaitMs } from "../config/limits.ts";
import { GatewayError } from "../errors.ts";
import type { VendorCall } from "../vendor/vendor.ts";
import { Call, callStart } from "./call.ts";
import { ClientLink } from "./client-link.ts";
import { charge, settlement } from "./charge.ts";
import type { ExchangeContext, ExchangeOptions, RunStart } from "./run-options.ts";
import type { AskedText, Chunk, Door, PlannedRoute, PreparedCall } from "./door.ts";
import { type Held, hold } from "./holding.ts";
import { meter } from "./metering.ts";
import { endFailed, toldOf } from "./failures.ts";
import { upstreamRequestId } from "./headers.ts";
import { type PassedReply, WholePassed } from "./passed-reply.ts";
import { readAnswer } from "./read-answer.ts";
import { readCall } from "./read-call.ts";
import { explainFailure, explainUnkept, reportCall } from "./report.ts";
import { StreamHold } from "./stream-hold.ts";
import { StreamedReply } from "./streamed-reply.ts";
import type { Estimate } from "./tokens/request-tokens.ts";
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
  #held: Held | undefined;
  #open: OpenReply | undefined;
  /** A whole reply as it came, where it told no usage. */
  #unreported: Buffer | undefined;
  #reply: PassedReply<Out> | undefined;
  /** The money of a reply that is streamed. */
  #streamHold: StreamHold | undefined;
  /** Where the vendor goes on when the client leaves. */
  #link: ClientLink | undefined;

  constructor(options: ExchangeOptions, door: Door<Out>, start: RunStart) {
    this.#options = options;
    this.#door = door;
    this.#context = start.context;
    this.call = new Call(callStart(start, door.path));
  }

  /** What the vendor's style could not carry of the request. */
  get dropped(): readonly string[] {
    return this.#dropped;
  }

  /** Whether the client has left a vendor that goes on: there is nobody to pass anything on to. */
  get isLeft(): boolean {
    return this.#link?.isLeft === true;
  }

  /** Whether the gateway ended the reply before its vendor did. */
  get isStopped(): boolean {
    return this.#reply?.isStopped === true;
  }

  /** Reads the request as far as needed and finds the model; of a suspended account it reads nothing. */
  async read(): Promise<void> {
    const { call } = this;
    const asked = { call, door: this.#door, context: this.#context };
    const read = await readCall(asked, this.#options);
    ({ text: this.#text, model: this.#model, routes: this.#routes, first: this.#first } = read);
  }

  /** Sets aside what the call can cost: the most, or where a stream may become as long as the model can make
   * it, what nearly all of them cost. */
  async hold(): Promise<void> {
    const { isLimitRequired = false } = this.#door;
    const { body, source } = this.#first ?? {};
    const asked = { ...this.#known(), isLimitRequired, routes: this.#routes, body, source };
    this.#held = await hold(this.call, asked, this.#options);
  }

  /** Asks the model's vendors until one answers, see {@link readAnswer}. */
  async ask(): Promise<void> {
    this.#open = await this.#options.upstream.open({
      routes: this.#routes,
      operation: this.#door.operation,
      send: this.#door.send?.bind(this.#door),
      onAttempt: (vendor) => this.call.asked(vendor),
      onFailed: (vendor, error) => this.call.failed(vendor, error),
      callFor: (planned) => this.#callFor(planned),
    });
    const { reply, refusal, planned } = this.#open;
    this.call.upstreamRequestId = upstreamRequestId(reply.headers);
    if (refusal !== undefined) {
      this.call.status = reply.status;
      this.call.end(CallEnding.UPSTREAM_REFUSED, refusal.error);
      const told = this.#door.refusal({ ...refusal, status: reply.status }, planned);
      if (told instanceof GatewayError) throw told;
      this.#reply = new WholePassed({ body: told, usage: undefined, textBytes: 0 }, false);
      return;
    }
    const whole = await readAnswer(reply, this.#door.isStreamed?.(reply));
    if (whole === undefined) return this.#begin(this.#open);
    this.call.answered();
    this.#reply = new WholePassed(this.#door.whole(whole, planned));
    if (this.#reply.usage === undefined) this.#unreported = whole;
  }

  /** The reply is streamed. A door that reads no streams refuses here. */
  #begin({ planned, reply: { body } }: OpenReply): void {
    const { call } = this;
    const { ledger, pricing, streams } = this.#options;
    const [{ model }, plan] = [this.#known(), this.#held?.plan];
    if (plan === undefined) throw new Error("nothing is held yet");
    const stream = this.#door.stream(planned, plan.firstNanos < plan.mostNanos);
    const reply = new StreamedReply({ call, stream, body });
    this.#reply = reply;
    const price = pricing.priceAt(model, call.startMs);
    const costOf = (usage: Usage): bigint =>
      pricing.cost(price, { ...usage, ...call.units }, call.start.discountBp);
    const toDate = (): void => this.#charge();
    this.#streamHold = new StreamHold({ call, reply, plan, ledger, charge: toDate, costOf });
    streams.add(this.#streamHold);
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
      signal: this.#signalFor(planned),
    };
  }

  /** What stops the vendor: the client's leaving, or where that saves nothing, what ends its draining. */
  #signalFor({ isDrained = false }: PlannedRoute): AbortSignal {
    const { signal: client } = this.#context;
    // Nobody waits any more: a vendor that was not asked yet is not asked.
    if (client.aborted || !isDrained) return client;
    const { drains } = this.#options;
    this.#link ??= new ClientLink({ client, drains, call: this.call });
    return this.#link.signal;
  }

  /** What the client's reply begins with. */
  head(): { readonly status: number; readonly headers: Record<string, string> } {
    const { reply, planned } = this.#opened();
    this.isHeadOut = true;
    if (!this.isLeft) this.call.status = reply.status;
    const headers = this.#door.headers({
      upstream: reply.headers,
      length: this.#passed().length,
      dropped: this.#dropped,
      isRelayed: planned.dialect === this.#door.dialect,
    });
    return { status: reply.status, headers };
  }

  /** Resolves to whether there are bytes to {@link take}; false at the end. */
  ready(): Promise<boolean> {
    return this.#passed().ready();
  }

  /** What has come for the client; empty where no event is complete yet. */
  take(): Out {
    return this.#passed().take();
  }

  /** Keeps what a later request may refer to, once `last` ends the reply. `undefined`: there is nothing. A
   * reply is not worth less for it: what fails here is for the log. */
  keep(last: Out): Promise<void> | undefined {
    const { isDone, isStopped } = this.#passed();
    // A vendor that was stopped has kept nothing that could be referred to.
    const isKept = isDone || (isStopped && this.#opened().planned.dialect !== this.#door.dialect);
    return isKept ? this.#keep(last) : undefined;
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
    return this.#passed().rest();
  }

  /** The event that ends a stream which failed; `undefined`: the caller is told by the failure itself. */
  errorEvent(told: GatewayError): Out | undefined {
    return this.#passed().errorEvent(told);
  }

  /** Names the ending of a call that failed, and what its client is told. */
  fail(error: unknown): GatewayError {
    const { call } = this;
    const { signal } = this.#context;
    const told = this.#reply?.failure ?? toldOf(error, signal);
    endFailed(call, told, { signal, isDone: this.#reply?.isDone === true });
    explainFailure(call, told, this.#options.log);
    return told;
  }

  /** Charges what was delivered, frees the rest, writes the record. Runs however the call ended. */
  async settle(): Promise<void> {
    const { call } = this;
    if (this.isLeft) await this.#reply?.drain();
    this.#link?.end();
    this.#open?.close();
    if (this.#streamHold !== undefined) {
      this.#options.streams.delete(this.#streamHold);
      this.#streamHold.end();
    }
    call.dropped = [...new Set([...this.#dropped, ...this.#door.droppedOfReply])];
    // The reader went away between two reads, or did not read while the gateway stopped: nobody threw.
    const isStop = this.#context.signal.reason instanceof GatewayStopping;
    const unread = isStop ? CallEnding.GATEWAY_STOPPED : CallEnding.CLIENT_GONE;
    call.end(this.#reply?.isDone ? CallEnding.COMPLETED : unread);
    if (call.heldNanos === undefined) {
      this.#options.ledger.record(call.toRow());
      reportCall(call, this.#options);
      return;
    }
    // What the stop of a reply has told is what is charged.
    if (this.#streamHold?.isUsedUp !== true) this.#charge(await this.#estimate());
    reportCall(call, this.#options);
    await this.#options.ledger.settle(settlement(call));
  }

  /** What is charged for where the vendor reported nothing. */
  async #estimate(): Promise<Estimate | undefined> {
    const vendorModel = this.#open?.planned.route.model;
    const reported = this.#reply?.usage;
    return this.#held?.tokens.estimate({ reported, vendorModel, reply: this.#unreported });
  }

  /** Writes on the call what it consumed so far, and what that costs. Default: nothing was counted. */
  #charge(estimate?: Estimate): void {
    const { call } = this;
    const { text, model } = this.#known();
    const reported = this.#reply?.usage;
    const metered = (this.#door.meter ?? meter)({
      reported,
      ...(estimate ?? { inputTokens: reported ? 0 : (this.#held?.tokens.usual ?? 0) }),
      textBytes: this.#reply?.textBytes ?? 0,
      units: this.#reply?.units,
      isWhole: call.ending === CallEnding.COMPLETED || this.#reply?.isComplete === true,
      wantsText: text.maxOutputTokens !== 0,
    });
    const { pricing } = this.#options;
    charge(call, { metered, model, route: this.#open?.planned.route, pricing });
  }

  #known(): { text: AskedText; model: ModelConfig } {
    if (this.#text === undefined || this.#model === undefined) throw new Error("not read yet");
    return { text: this.#text, model: this.#model };
  }

  #passed(): PassedReply<Out> {
    if (this.#reply === undefined) throw new Error("no reply yet");
    return this.#reply;
  }

  #opened(): OpenReply {
    if (this.#open === undefined) throw new Error("not asked yet");
    return this.#open;
  }
}
