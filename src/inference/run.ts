/** One run of an exchange: its state, and its phases as methods. */
import { randomUUIDv7 } from "node:crypto";
import type { Logger } from "pino";
import { CallEnding } from "../../gen/uas/billing/v1/billing_pb.ts";
import type { ExchangeRequest } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { nothing } from "../bytes.ts";
import type { Ledger } from "../billing/ledger.ts";
import { type Caller, GatewayStopping } from "../caller.ts";
import type { ModelConfig } from "../config/config.ts";
import { replyBytesMax } from "../config/limits.ts";
import type { RelayOptions, StreamRelay, TextDialect, TextRequest } from "../dialect/dialect.ts";
import { EventTooLongError } from "../dialect/event-stream.ts";
import { textDialects } from "../dialect/index.ts";
import { ErrorCode, GatewayError, internalError } from "../errors.ts";
import { HttpFailure } from "../http/failure.ts";
import type { Metrics } from "../metrics.ts";
import { Call } from "./call.ts";
import type { Catalogue } from "./catalogue.ts";
import { estimateTokens, meter } from "./metering.ts";
import { insufficient, unusable } from "./failures.ts";
import { explainFailure, reportCall } from "./report.ts";
import { checkRequest, forwarded, replyHeaders } from "./headers.ts";
import type { RunningCalls } from "./running-calls.ts";
import { failureError } from "./upstream-refusal.ts";
import type { OpenReply, Upstream } from "./upstream.ts";

/** Prices, as billing keeps them. */
export interface Pricing {
  /** The version that a charge is made with now. */
  version(model: ModelConfig): string;
  /** What to hold, in nano-USD, rounded up. */
  hold(model: ModelConfig, tokens: { input: number; output: number }): bigint;
  /** What to charge, in nano-USD, rounded down. */
  cost(model: ModelConfig, usage: Usage): bigint;
}

export interface ExchangeOptions {
  readonly catalogue: Catalogue;
  readonly ledger: Ledger;
  readonly pricing: Pricing;
  readonly upstream: Upstream;
  readonly calls: RunningCalls;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** Who calls, and until when. */
export interface ExchangeContext {
  readonly caller: Extract<Caller, { kind: "key" }>;
  readonly requestId: string;
  /** Aborted when the client leaves or the gateway stops. */
  readonly signal: AbortSignal;
}

/** The state of one run; its methods are the phases. */
export class Run {
  readonly call: Call;
  isHeadOut = false;

  readonly #options: ExchangeOptions;
  readonly #request: ExchangeRequest;
  readonly #context: ExchangeContext;
  readonly #dialect: TextDialect | undefined;
  #text: TextRequest | undefined;
  #model: ModelConfig | undefined;
  #open: OpenReply | undefined;
  #whole: Buffer | undefined;
  #reported: Usage | undefined;
  #textBytes = 0;
  #relay: StreamRelay | undefined;
  /** The terminal event is out: whatever happens now, the client has everything. */
  #isDone = false;

  constructor(options: ExchangeOptions, request: ExchangeRequest, context: ExchangeContext) {
    this.#options = options;
    this.#request = request;
    this.#context = context;
    this.#dialect = textDialects.get(request.dialect);
    const { accountId, keyId } = context.caller;
    this.call = new Call({
      id: randomUUIDv7(),
      requestId: context.requestId,
      accountId,
      keyId,
      path: request.path,
    });
  }

  get dialect(): TextDialect {
    if (this.#dialect !== undefined) return this.#dialect;
    throw new GatewayError(
      ErrorCode.INVALID_REQUEST,
      "dialect: name one that carries text generation",
    );
  }

  /** Reads the body as far as needed and finds the model. */
  read(): void {
    const { alwaysStream, platformAliases, body } = this.#request;
    checkRequest(this.#request);
    this.#text = this.dialect.readRequest(body, { alwaysStream, platformAliases });
    this.call.stream = this.#text.stream;
    this.call.model = this.#text.model;
    this.#model = this.#options.catalogue.authorize(this.#context.caller, this.#text.model);
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
    const { text, model } = this.#known();
    const { signal } = this.#context;
    this.#open = await this.#options.upstream.open({
      model,
      dialect: this.#request.dialect,
      onAttempt: (vendor) => this.call.asked(vendor),
      callFor: (route) => ({
        dialect: this.#request.dialect,
        model: route.model,
        query: this.#request.query,
        headers: forwarded(this.#request.headers, this.dialect.forwardedHeaders),
        body: text.forVendor(route.model),
        stream: text.stream,
        signal,
      }),
    });
    const { reply, refusal, route } = this.#open;
    this.call.upstreamRequestId = reply.headers["x-request-id"] ?? "";
    if (refusal !== undefined) {
      this.#whole = refusal.body;
      this.call.status = reply.status;
      this.call.end(CallEnding.UPSTREAM_REFUSED, refusal.error);
      return;
    }
    const type = reply.headers["content-type"] ?? "";
    const encoding = reply.headers["content-encoding"] ?? "identity";
    if (encoding !== "identity") throw unusable(`content-encoding ${encoding}, not asked for`);
    if (type.startsWith("text/event-stream")) return;
    if (!type.includes("json")) throw unusable(`content-type ${type || "(none)"}`);
    const whole = await reply.body.whole(replyBytesMax);
    this.call.answered();
    if (whole[0] !== 0x7b && !whole.toString("latin1", 0, 64).trimStart().startsWith("{")) {
      throw unusable("a body that is no JSON object");
    }
    const relayed = this.dialect.relayReply(whole, this.#relayOptions(route.model));
    this.#reported = relayed.usage;
    this.#textBytes = relayed.textBytes;
    this.#whole = relayed.body;
  }

  /** What the client's reply begins with. */
  head(): { readonly status: number; readonly headers: Record<string, string> } {
    const { reply } = this.#opened();
    this.isHeadOut = true;
    this.call.status = reply.status;
    return { status: reply.status, headers: replyHeaders(reply.headers, this.#whole?.length) };
  }

  /** Resolves to whether there are bytes to {@link take}; false at the end. */
  ready(): Promise<boolean> {
    if (this.#whole !== undefined) {
      return Promise.resolve(!this.#isDone && this.#whole.length > 0);
    }
    if (this.#relay?.failed) {
      this.call.end(CallEnding.UPSTREAM_FAILED, failureError("reset", undefined));
      return Promise.resolve(false);
    }
    return this.#opened().reply.body.ready();
  }

  /** What has come for the client; empty where no event is complete yet. */
  take(): Buffer {
    if (this.#whole !== undefined) {
      this.#isDone = true;
      return this.#whole;
    }
    const relay = this.#streamRelay();
    const passed = relay.push(this.#opened().reply.body.take());
    this.#track(relay);
    if (passed.length > 0) this.call.answered();
    return passed;
  }

  /** What is left for the client once {@link ready} has said no. Throws where the stream was cut. */
  rest(): Buffer {
    const relay = this.#relay;
    if (this.#whole !== undefined || relay?.failed) return nothing;
    const last = relay?.end() ?? nothing;
    if (relay) this.#track(relay);
    // The connection closed in good order, but had the vendor said that it was done?
    if (last.length === 0 && !relay?.finished) throw new HttpFailure("reset", "the stream was cut");
    return last;
  }

  /** The event that ends a stream which failed. */
  errorEvent(told: GatewayError): Buffer {
    return this.#streamRelay().errorEvent(told);
  }

  #streamRelay(): StreamRelay {
    const { model } = this.#opened().route;
    return (this.#relay ??= this.dialect.relayStream(this.#relayOptions(model)));
  }

  #track({ usage, textBytes, done }: StreamRelay): void {
    this.#reported = usage;
    this.#textBytes = textBytes;
    this.#isDone = done;
  }

  /** Names the ending of a call that failed, and what its client is told. */
  fail(error: unknown): GatewayError {
    const { call } = this;
    const told = this.#told(error);
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
    const { usage, source, isCharged } = meter({
      reported: this.#reported,
      requestBytes: text.bytes,
      textBytes: this.#textBytes,
      isWhole: call.ending === CallEnding.COMPLETED,
    });
    call.usage = usage;
    call.usageSource = source;
    if (isCharged && usage) call.costNanos = this.#options.pricing.cost(model, usage);
    const { id, accountId } = call.start;
    const { costNanos } = call;
    reportCall(call, this.#options);
    await this.#options.ledger.settle({ id, accountId, costNanos, record: call.toRow() });
  }

  #relayOptions(vendorModel: string): RelayOptions {
    const { text } = this.#known();
    return {
      publicModel: vendorModel === text.model ? undefined : text.model,
      hideUsage: text.stream && !text.wantsUsage,
      choices: text.choices,
    };
  }

  #told(error: unknown): GatewayError {
    if (error instanceof GatewayError) return error;
    if (this.#context.signal.reason instanceof GatewayStopping) {
      return new GatewayError(ErrorCode.SERVICE_UNAVAILABLE, "The gateway is stopping; try again");
    }
    if (error instanceof HttpFailure) return failureError(error.kind, error);
    if (error instanceof EventTooLongError) return unusable(error.message);
    return internalError(error);
  }

  #known(): { text: TextRequest; model: ModelConfig } {
    if (this.#text === undefined || this.#model === undefined) throw new Error("not read yet");
    return { text: this.#text, model: this.#model };
  }

  #opened(): OpenReply {
    if (this.#open === undefined) throw new Error("not asked yet");
    return this.#open;
  }
}
