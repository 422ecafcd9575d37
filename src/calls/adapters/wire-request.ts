/** A request in a wire style and its replies: relayed unchanged, or translated. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import type { ExchangeRequest } from "../../../gen/uas/inference/v1/inference_service_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { pricedUnits } from "../../config/price.ts";
import { asBuffer } from "../../core/bytes.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { BilledFeatures, FeatureRules } from "../../dialect/features/billed-features.ts";
import { applyEdits } from "../../dialect/body-members.ts";
import { ownStops } from "../../dialect/stop-sequences.ts";
import type { EncodedRequest, RequestTarget } from "../../dialect/codec.ts";
import { CostStream, writeReplyCost } from "../../dialect/features/cost.ts";
import type { RelayOptions, StreamRelay, TextDialect, TextRequest } from "../../dialect/dialect.ts";
import { textDialects } from "../../dialect/index.ts";
import type { Outline } from "../../wire/json/outline.ts";
import { UnreadableReplyError } from "../../wire/json/value.ts";
import { isEventStream } from "../../dialect/whole-reply.ts";
import type { VendorReply } from "../../provider/reply.ts";
import {
  askForSummary,
  asksForCompaction,
  compactBody,
  CompactionRewriter,
  compactReplies,
} from "../../dialect/responses/compaction.ts";
import { requireChoices, TranslatedChoices } from "../../dialect/translated-choices.ts";
import {
  TranslatedStream,
  translateReply,
  translateToStream,
  type Translation,
} from "../../dialect/translate.ts";
import { vendorHeaders, replyHeaders } from "./headers.ts";
import { memberList } from "../../core/member-list.ts";
import type { RoutingWishes } from "../../routing/preferences.ts";
import { estimateTokens } from "../../tokens/estimate.ts";
import {
  type AnsweredBy,
  type CostWriter,
  ReadRequest,
  type Recalled,
  type ReplyHead,
  type RequestSummary,
  type VendorRefusal,
  type WholeReply,
} from "../pipeline/adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { PreparedCall } from "../../routing/prepared-call.ts";
import type { ConversationId } from "../../routing/affinity.ts";
import { ReasoningCollector, recallReasoning } from "../../responses/stored/reasoning.ts";
import {
  type CallState,
  type RecalledRequest,
  recallResponses,
  storedElsewhere,
  storeResponse,
} from "../../responses/stored/responses-memory.ts";
import { requestSize } from "../../tokens/request-tokens.ts";
import {
  memberNameOf,
  refuseDropped,
  repeated,
  toolRestorer,
  toVendorError,
  replyDecoder,
  vendorDialect,
  withMemberName,
} from "./translation.ts";
import { conversationOf } from "./conversation.ts";
import { checkCompactRequest, compactBy, userMessages } from "./compaction-request.ts";

/** Members with which a request names what its vendor stores or fetches. */
const storedReference =
  /"(?:previous_response_id|conversation|prompt|file_id|file_url|container|url|image_url|file_uri|fileUri|cachedContent)"\s*:/;

/** Options of {@link WireRequest}. */
export interface WireOptions {
  readonly request: ExchangeRequest;
  /** The gateway's id of the call, a UUID. */
  readonly callId: string;
  readonly accountId: string;
  readonly clock: Pick<Clock, "now">;
  /** The state that outlives a call. */
  readonly state: CallState;
}

/**
 * Members of the responses style that the gateway implements itself: dropping them loses nothing.
 */
const gatewayMembers: ReadonlySet<string> = new Set(["store", "metadata", "previous_response_id"]);

/** The body to send, and facts of the body that the client sent. */
interface RequestBody {
  /** The body with its references resolved. */
  readonly body: Uint8Array;
  /** The outline of the client's body; `undefined` while `body` is the client's. */
  readonly sent: Outline | undefined;
  /** The continued response, once its conversation is in the body; undefined if there is none. */
  readonly previous: string | undefined;
  /** Bytes that the vendor has stored and its model reads. Default 0. */
  readonly storedBytes?: number;
  /** Routing preferences of the request. */
  readonly wishes: RoutingWishes;
}

/** A request that says nothing about routing. */
export const noWishes: RoutingWishes = {};

/** A request in a wire style that has been read. */
export class WireRequest extends ReadRequest<Buffer> {
  readonly text: TextRequest & Pick<RequestSummary, "storedBytes">;
  override readonly dialect: Dialect;
  override readonly query: string;
  override readonly isLimitRequired: boolean;
  override readonly readsWholeEvents = true;
  override isRewritten = false;
  override readonly droppedOfReply: string[] = [];
  override readonly wishes: RoutingWishes;
  readonly #options: WireOptions;
  readonly #style: TextDialect;
  readonly #read: RequestBody;
  readonly #startMs: number;
  /** Set only if a reply is translated for a client whose style cannot carry reasoning. */
  #collector: ReasoningCollector | undefined;
  #generation: Generation | undefined;

  /** @throws GatewayError INVALID_REQUEST */
  constructor(options: WireOptions, read: RequestBody) {
    super();
    const { dialect, query, alwaysStream, platformAliases } = options.request;
    this.#options = options;
    this.#read = read;
    this.#startMs = options.clock.now();
    this.wishes = read.wishes;
    this.#style = styleOf(dialect);
    this.dialect = dialect;
    this.query = query;
    this.isLimitRequired = this.#style.isLimitRequired === true;
    const text = this.#style.readRequest(read.body, { alwaysStream, platformAliases });
    if (options.request.compact) checkCompactRequest(text);
    const { storedBytes = 0 } = read;
    this.text =
      storedBytes === 0 ? text : { ...text, bytes: text.bytes + storedBytes, storedBytes };
  }

  override conversation(): ConversationId | undefined {
    const { headers } = this.#options.request;
    return conversationOf(asBuffer(this.#read.body), this.text.outline, headers);
  }

  override get readsPrompt(): boolean {
    const { outline } = this.text;
    return outline.members.some(({ key }) => key === "prompt_logprobs" || key === "echo");
  }

  override get refersToStored(): boolean {
    return storedReference.test(asBuffer(this.#read.body).toString("latin1"));
  }

  /** The model that the reply names. */
  get #shownModel(): string {
    return this.answeredBy ?? this.text.model;
  }

  override recall(routes: readonly PlannedRoute[]): Promise<Recalled<Buffer>> | undefined {
    const { state, accountId } = this.#options;
    if (this.dialect === Dialect.RESPONSES) {
      const sent = { body: this.#read.body, outline: this.text.outline };
      const recalled = recallResponses(state.responses, accountId, sent);
      return recalled?.then((found) => this.#recalled(found, routes));
    }
    const [first] = routes;
    const isForeign = first !== undefined && first.dialect !== this.dialect;
    if (this.dialect !== Dialect.CHAT_COMPLETIONS || !isForeign) return undefined;
    const recalled = recallReasoning(state.reasoning, accountId, this.#decoded());
    return recalled?.then(() => ({ request: this, routes }));
  }

  override keep(last: Buffer, planned: PlannedRoute): Promise<void> | undefined {
    const { dialect } = planned;
    const { state, accountId, request } = this.#options;
    if (this.dialect === Dialect.RESPONSES) {
      // A compacted conversation is no response, and goes into the next request itself.
      if (request.compact) return undefined;
      return storeResponse(state.responses, {
        accountId,
        model: this.text.model,
        request: request.body,
        outline: this.#read.sent ?? this.text.outline,
        last,
        vendor: dialect === this.dialect && !this.isRewritten ? storageOf(planned) : undefined,
      });
    }
    const stored = this.#collector?.sealed();
    if (stored === undefined) return undefined;
    return state.reasoning.keep(accountId, stored.callIds, stored.json).then(() => {});
  }

  prepare(model: ModelConfig, planned: PlannedRoute): PreparedCall {
    const { text } = this;
    const { body } = this.#read;
    const { headers: sentHeaders, strict, compact } = this.#options.request;
    const isOwn = planned.dialect === this.dialect;
    const { maxToolCalls, fileStores } = model;
    const rules = { hasPrice: pricedUnits(model, this.#startMs), maxToolCalls, fileStores };
    const { unknownBetas } = planned;
    const headers = isOwn
      ? vendorHeaders(sentHeaders, this.#style, { ...rules, unknownBetas })
      : {};
    const { outline } = text;
    const asked = isOwn && this.#style.guard?.(body, { ...rules, isVerified: true, outline });
    if (isOwn && !this.#style.carriesSeals?.(body)) {
      const source = asBuffer(body);
      const features = asked || undefined;
      const sent = text.forVendor(planned.route, features?.edits);
      const send = compact ? compactBy(this, planned, { headers, body: sent }) : undefined;
      return { headers, body: sent, source, dropped: [], features, send };
    }
    const { encoded, features } = this.#encoded(planned, {
      model: planned.route.model,
      stream: text.stream,
      limitParameter: planned.route.limitParameter,
      quirks: planned.route.quirks,
      maxOutputTokens: model.maxOutputTokens,
      sourceDialect: this.dialect,
      rules,
    });
    const dropped = encoded.dropped
      .filter((name) => this.dialect !== Dialect.RESPONSES || !gatewayMembers.has(name))
      .map((name) => memberNameOf(this.#style.memberNames, name));
    if (strict) refuseDropped(dropped);
    // The client's headers win in its own style, as in a relayed request.
    const sent = isOwn ? { ...encoded.headers, ...headers } : encoded.headers;
    if (isOwn && compact) {
      const reduced = { headers: sent, body: [compactBody(encoded.body)] };
      return { ...reduced, dropped, features, send: compactBy(this, planned, reduced) };
    }
    const sentBody = applyEdits(encoded.body, features?.edits ?? []);
    return { headers: sent, body: sentBody, size: () => encoded.outline(), dropped, features };
  }

  override isStreamed(reply: VendorReply): boolean {
    return this.text.stream && super.isStreamed(reply);
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const { stream, choices } = this.text;
    const isOther = stream || isEventStream(body);
    this.isRewritten = planned.dialect === this.dialect && isOther;
    if (planned.dialect === this.dialect && !isOther) {
      return this.#style.relayReply(body, this.#relayOptions(planned));
    }
    if (isOther && choices > 1) throw new UnreadableReplyError("no stream of several choices");
    if (this.isRewritten && this.#options.request.compact) {
      throw new UnreadableReplyError("a compaction as a stream");
    }
    const translate = stream ? translateToStream : translateReply;
    return translate(body, this.#translation(planned));
  }

  stream(planned: PlannedRoute): StreamRelay {
    this.isRewritten = false;
    if (planned.dialect === this.dialect) {
      return this.#style.relayStream(this.#relayOptions(planned));
    }
    return this.text.choices > 1
      ? this.#choices(planned)
      : new TranslatedStream(this.#translation(planned));
  }

  #choices(planned: PlannedRoute): StreamRelay {
    const { choices: count } = this.text;
    const choices = Array.from({ length: count }, (_, at) => this.#translation(planned, at));
    const [first] = choices;
    const splitter = vendorDialect(planned.dialect).splitStream?.(count);
    const encoder = first && this.#style.encodeChoices?.(first.options, count);
    if (first === undefined || splitter === undefined || encoder === undefined) {
      throw new UnreadableReplyError("a stream of several choices");
    }
    return new TranslatedChoices({ choices, splitter, encoder, charged: first.charged });
  }

  override addedTextBytes(event: Buffer, { planned }: AnsweredBy, knownBytes: number): number {
    return vendorDialect(planned.dialect).addedTextBytes(event, knownBytes);
  }

  headers({ upstream, length, dropped, isRelayed }: ReplyHead): Record<string, string> {
    const isStream = length === undefined || (!isRelayed && this.text.stream);
    const headers = replyHeaders(upstream, isStream ? undefined : length);
    if (dropped.length > 0) headers["x-uas-dropped"] = memberList(dropped);
    if (isRelayed) return headers;
    headers["content-type"] = isStream ? "text/event-stream; charset=utf-8" : "application/json";
    return headers;
  }

  override costWriter(): CostWriter<Buffer> | undefined {
    if (!this.#options.request.reportCost) return undefined;
    const { usageEvents } = this.#style;
    const stream = new CostStream(usageEvents);
    return {
      whole: (body, cost) => writeReplyCost(body, usageEvents, cost),
      write: (out, cost) => stream.write(out, cost),
      rest: (cost) => stream.rest(cost),
    };
  }

  refusal(
    { status, body, error }: VendorRefusal,
    { dialect }: PlannedRoute,
  ): Buffer | GatewayError {
    const relayed = dialect === this.dialect ? this.#style.relayError(body, error) : undefined;
    return relayed ?? toVendorError({ status, body, error }, dialect);
  }

  #relayOptions({ route }: PlannedRoute): RelayOptions {
    const { text } = this;
    return {
      publicModel: route.model === this.#shownModel ? undefined : this.#shownModel,
      hideUsage: text.stream && !text.wantsUsage && !this.#options.request.reportCost,
      choices: text.choices,
    };
  }

  #encoded(
    { dialect, vendorUrl, fileBuckets }: PlannedRoute,
    { rules, ...target }: RequestTarget & { readonly rules: FeatureRules },
  ): {
    readonly encoded: EncodedRequest;
    readonly features: BilledFeatures | undefined;
  } {
    try {
      const generation = this.#askedOf(dialect);
      const codec = vendorDialect(dialect);
      const { choices, stream } = this.text;
      if (dialect !== this.dialect) requireChoices(codec, { choices, stream });
      const encoded = codec.encodeRequest(generation, { ...target, choices });
      ownStops(codec, generation.stop);
      const features = codec.guard?.(encoded.body, {
        ...rules,
        isVerified: true,
        vendorUrl,
        fileBuckets,
        outline: encoded.outline(),
      });
      return { encoded, features };
    } catch (error) {
      throw withMemberName(this.#style.memberNames, error);
    }
  }

  /**
   * Returns the request for a vendor of a style. A vendor that cannot compact gets a request for a
   * summary.
   */
  #askedOf(dialect: Dialect | undefined): Generation {
    const generation = this.#decoded();
    return dialect !== this.dialect && this.#isCompaction ? askForSummary(generation) : generation;
  }

  get #isCompaction(): boolean {
    if (this.dialect !== Dialect.RESPONSES) return false;
    return this.#options.request.compact || asksForCompaction(this.#decoded());
  }

  /** @param choice its number, in a stream of several */
  #translation(planned: PlannedRoute, choice = 0): Translation {
    const generation = this.#decoded();
    const { callId: id, request } = this.#options;
    const { reportCost } = request;
    const callId = id.replaceAll("-", "");
    if (this.dialect === Dialect.CHAT_COMPLETIONS) this.#collector ??= new ReasoningCollector();
    // Clients continue with the first choice.
    const collector = choice === 0 ? this.#collector : undefined;
    return {
      vendor: replyDecoder(planned, generation),
      ...(this.text.choices > 1 && { splitChoices: vendorDialect(planned.dialect).splitChoices }),
      caller: request.compact
        ? compactReplies(this.#style, userMessages(this.#read.body, callId))
        : this.#style,
      tools: toolRestorer(generation),
      watcher: collector,
      rewriter:
        this.#isCompaction && planned.dialect !== this.dialect
          ? new CompactionRewriter(callId)
          : undefined,
      charged: (text) => {
        const inputTokens = text.reported === undefined ? this.#typicalTokens() : 0;
        return this.usageOf(text, inputTokens);
      },
      options: {
        model: this.#shownModel,
        callId,
        created: secondsOf(this.#startMs),
        now: () => secondsOf(this.#options.clock.now()),
        inputTokens: this.#typicalTokens(),
        generation: repeated(generation, { previous: this.#read.previous, reportCost }),
        onDropped: (name) => {
          // The collector stores the seal for the client, so it is not lost.
          if (name === "reasoning.seal" && collector !== undefined) return;
          if (!this.droppedOfReply.includes(name)) this.droppedOfReply.push(name);
        },
      },
    };
  }

  /** The typical tokens of the request, at least 1. */
  #typicalTokens(): number {
    const { bytes, outline } = this.text;
    const { mediaBytes, mediaTokens } = requestSize(outline);
    return Math.max(1, mediaTokens + estimateTokens(Math.max(0, bytes - mediaBytes)));
  }

  /** The decoded request: decoded once, and only if a vendor speaks another style. */
  #decoded(): Generation {
    const { platformAliases } = this.#options.request;
    const { outline } = this.text;
    this.#generation ??= this.#style.decodeRequest(this.#read.body, { platformAliases, outline });
    return this.#generation;
  }

  #recalled(
    { body, vendor, previous, storedBytes }: RecalledRequest,
    routes: readonly PlannedRoute[],
  ): Recalled<Buffer> {
    const sent = this.text.outline;
    const { wishes } = this;
    const request = new WireRequest(this.#options, { body, sent, previous, storedBytes, wishes });
    if (vendor === undefined) return { request, routes };
    const [name, credential] = vendor.split("#");
    const sameVendor = routes
      .filter((planned) => planned.route.vendor === name && planned.dialect === this.dialect)
      .map((planned) => ({ ...planned, credential }));
    if (sameVendor.length === 0) throw storedElsewhere(vendor);
    return { request, routes: sameVendor };
  }
}

/** Whole seconds since 1970. */
function secondsOf(timeMs: number): number {
  return Math.floor(timeMs / 1_000);
}

/**
 * Returns the place where a vendor stored a response: `vendor`, or `vendor#credential` if the
 * vendor has several.
 */
function storageOf({ route, credential }: PlannedRoute): string {
  return credential === undefined ? route.vendor : `${route.vendor}#${credential}`;
}

function styleOf(dialect: Dialect): TextDialect {
  const style = textDialects.get(dialect);
  if (style !== undefined) return style;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    "dialect: send one that supports text generation",
  );
}
