/** Requests and replies in the contract's own messages. */
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type GenerateEvent,
  GenerateEventSchema,
  type Generation,
  GenerationSchema,
  type Reply,
  StopReason,
} from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { pricedUnits } from "../../config/price.ts";
import { ownStops } from "../../dialect/stop-sequences.ts";
import { applyEdits } from "../../dialect/body-members.ts";
import { countTools } from "../../dialect/tools/tool-calls.ts";
import type { VendorReply } from "../../provider/reply.ts";
import { lengthEnd, replyEvents, replyTextBytes } from "../../dialect/reply-events.ts";
import { type ChargedUsage, EventReply, EventStream } from "../../dialect/translate.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import { replyRepetition, streamRepetition } from "./typed-repetition.ts";
import { replyDecoder, toolRestorer, vendorDialect, toVendorError } from "./translation.ts";
import {
  type AnsweredBy,
  type RequestSummary,
  CallAdapter,
  ReadRequest,
  type VendorRefusal,
  type Repetition,
  type ReplyStream,
  type WholeReply,
} from "../pipeline/adapter.ts";
import { type PlannedRoute } from "../../routing/planned-route.ts";
import { type PreparedCall } from "../../routing/prepared-call.ts";

export class TypedAdapter extends CallAdapter<GenerateEvent[]> {
  readonly #generation: Generation;
  readonly #clock: Pick<Clock, "now">;
  readonly #onReply: ((reply: Reply) => void) | undefined;
  #reply: Reply | undefined;

  /** @param onReply called with a complete reply. Default: only its events are sent */
  constructor(generation: Generation, clock: Pick<Clock, "now">, onReply?: (reply: Reply) => void) {
    super();
    this.#generation = generation;
    this.#clock = clock;
    this.#onReply = onReply;
  }

  get path(): string {
    const method = this.#generation.stream ? "StreamGenerate" : "Generate";
    return `/uas.inference.v1.InferenceService/${method}`;
  }

  override get repetition(): Repetition<GenerateEvent[]> {
    if (this.#onReply === undefined) return streamRepetition(this.#generation);
    return replyRepetition(this.#generation, () => this.#reply, this.#onReply);
  }

  read(): TypedRequest {
    const { model, maxOutputTokens, conversation } = this.#generation;
    if (model === "") throw invalid("generation.model", "name one of those that ListModels lists");
    if ((conversation?.turns.length ?? 0) === 0) {
      throw invalid("generation.conversation.turns", "send at least one turn");
    }
    if (maxOutputTokens !== undefined && maxOutputTokens < 1) {
      throw invalid("generation.max_output_tokens", "send a whole number from 1 on, or none");
    }
    const take = (reply: Reply): void => {
      this.#reply = reply;
      this.#onReply?.(reply);
    };
    return new TypedRequest(this.#generation, this.#clock, this.#onReply && take);
  }

  modelName(): string {
    return this.#generation.model;
  }
}

/** A valid request in the contract's own messages. */
export class TypedRequest extends ReadRequest<GenerateEvent[]> {
  override readonly dialect = undefined;
  override readonly readsWholeEvents = true;
  readonly #generation: Generation;
  readonly #startMs: number;
  readonly #onReply: ((reply: Reply) => void) | undefined;
  #text: RequestSummary | undefined;
  /** Decides the usage that the reply reports. */
  readonly #charged: ChargedUsage = (text) => {
    const inputTokens = text.reported === undefined ? estimateTokens(this.text.bytes) : 0;
    return this.usageOf(text, inputTokens);
  };

  /** @param clock decides which price is in force */
  constructor(generation: Generation, clock: Pick<Clock, "now">, onReply?: (reply: Reply) => void) {
    super();
    this.#generation = generation;
    this.#startMs = clock.now();
    this.#onReply = onReply;
  }

  get text(): RequestSummary {
    if (this.#text === undefined) {
      const { model, stream, maxOutputTokens } = this.#generation;
      const bytes = toBinary(GenerationSchema, this.#generation).length;
      this.#text = { model, stream, maxOutputTokens, choices: 1, bytes };
    }
    return this.#text;
  }

  prepare(
    model: ModelConfig,
    { route, dialect, vendorUrl, fileBuckets }: PlannedRoute,
  ): PreparedCall {
    const codec = vendorDialect(dialect);
    const encoded = codec.encodeRequest(this.#generation, {
      model: route.model,
      stream: this.#generation.stream,
      limitParameter: route.limitParameter,
      quirks: route.quirks,
      maxOutputTokens: model.maxOutputTokens,
      sourceDialect: undefined,
    });
    ownStops(codec, this.#generation.stop);
    // Parts in the vendor's own style are relayed unchanged, so they must be checked.
    const features = codec.guard?.(encoded.body, {
      isVerified: false,
      hasPrice: pricedUnits(model, this.#startMs),
      maxToolCalls: model.maxToolCalls,
      fileStores: model.fileStores,
      vendorUrl,
      fileBuckets,
      outline: encoded.outline(),
    });
    const body = applyEdits(encoded.body, features?.edits ?? []);
    return {
      headers: encoded.headers,
      body,
      size: () => encoded.outline(),
      dropped: encoded.dropped,
      features,
    };
  }

  override isStreamed(reply: VendorReply): boolean {
    return this.#generation.stream && super.isStreamed(reply);
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<GenerateEvent[]> {
    const tools = toolRestorer(this.#generation);
    const reply = tools.reply(replyDecoder(planned, this.#generation).decodeReply(body));
    reply.model = this.#generation.model;
    const textBytes = replyTextBytes(reply);
    const { usage } = reply;
    const isInputOwed = reply.stopReason === StopReason.STOP_SEQUENCE;
    const units = countTools(reply.parts);
    const { due, told } = this.#charged({ reported: usage, textBytes, units, isInputOwed });
    const estimated = due === usage ? undefined : due;
    if (told !== undefined) reply.usage = told;
    this.#onReply?.(reply);
    // `onReply` has the complete reply already, so one empty event represents it.
    const events = this.#generation.stream ? replyEvents(reply) : [create(GenerateEventSchema)];
    return { body: events, usage, estimated, textBytes, units };
  }

  stream(planned: PlannedRoute): ReplyStream<GenerateEvent[]> {
    const tools = toolRestorer(this.#generation);
    const decoder = replyDecoder(planned, this.#generation).decodeStream();
    const { model } = this.#generation;
    return new TypedStream(new EventStream(decoder, tools, this.#charged), { model });
  }

  override addedTextBytes(event: Buffer, { planned }: AnsweredBy, knownBytes: number): number {
    return vendorDialect(planned.dialect).addedTextBytes(event, knownBytes);
  }

  headers(): Record<string, string> {
    return {};
  }

  refusal(refused: VendorRefusal, { dialect }: PlannedRoute): GatewayError {
    return toVendorError(refused, dialect);
  }
}

/** A vendor's stream as the caller's events. */
class TypedStream extends EventReply implements ReplyStream<GenerateEvent[]> {
  readonly #model: string;

  /** The parts that have not ended. */
  readonly #open = new Set<number>();

  constructor(source: EventStream, { model }: { readonly model: string }) {
    super(source);
    this.#model = model;
  }

  push(pieces: readonly Buffer[]): GenerateEvent[] {
    return this.#named(this.source.push(pieces));
  }

  end(): GenerateEvent[] {
    return this.#named(this.source.end());
  }

  /** Empty if a typed caller gets the thrown error. */
  errorEvent(): GenerateEvent[] {
    return [];
  }

  stop(usage: Usage | undefined): GenerateEvent[] {
    const ends = [...this.#open].map((index) =>
      create(GenerateEventSchema, { kind: { case: "partEnd", value: { index } } }),
    );
    return [...ends, lengthEnd(usage)];
  }

  /** Replaces the vendor's model name by the public one. */
  #named(events: GenerateEvent[]): GenerateEvent[] {
    for (const { kind } of events) {
      if (kind.case === "start") kind.value.model = this.#model;
      else if (kind.case === "partStart") this.#open.add(kind.value.index);
      else if (kind.case === "partEnd") this.#open.delete(kind.value.index);
    }
    return events;
  }
}

function invalid(param: string, advice: string): GatewayError {
  return new GatewayError(ErrorCode.INVALID_REQUEST, `${param}: ${advice}`, { param });
}
