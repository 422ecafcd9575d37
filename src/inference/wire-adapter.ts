/** Requests and replies in a wire style: relayed unchanged, or translated. */
import { asBuffer } from "../core/bytes.ts";
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeRequest } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { ExtraSchema } from "../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { pricedUnits } from "../config/price.ts";
import { type EncodedRequest, type RequestTarget } from "../dialect/codec.ts";
import { UnreadableReplyError } from "../dialect/json/value.ts";
import { CostStream, writeReplyCost } from "../dialect/cost.ts";
import type { RelayOptions, StreamRelay, TextDialect, TextRequest } from "../dialect/dialect.ts";
import { textDialects } from "../dialect/index.ts";
import {
  type Translation,
  TranslatedStream,
  translateReply,
  translateToStream,
} from "../dialect/translate.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import type { Outline } from "../dialect/json/outline.ts";
import type { BilledFeatures, FeatureRules } from "../dialect/billed-features.ts";
import { applyEdits, namedModel } from "../dialect/body-members.ts";
import {
  withMemberName,
  memberNameOf,
  refuseDropped,
  toolRestorer,
  vendorDialect,
  toVendorError,
} from "./translation.ts";
import {
  type RequestSummary,
  CallAdapter,
  type CostWriter,
  type PlannedRoute,
  type PreparedCall,
  ReadRequest,
  type Recalled,
  type VendorRefusal,
  type ReplyHead,
  type WholeReply,
} from "./pipeline/adapter.ts";
import { checkRequest, forwarded, memberList, replyHeaders } from "./headers.ts";
import { conversationOf } from "./conversation.ts";
import { estimateTokens } from "./metering.ts";
import type { Conversation } from "./routing/affinity.ts";
import { readPreferences } from "./routing/preferences.ts";
import { hasRoutingMembers, takeRoutingMembers, type RoutingWishes } from "./routing-members.ts";
import { requestSize } from "./tokens/request-size.ts";
import {
  storeResponse,
  storedElsewhere,
  recallResponses,
  type CallState,
  type RecalledRequest,
} from "./state/responses-memory.ts";
import { ReasoningCollector, recallReasoning } from "./state/reasoning.ts";

/** Options of {@link WireAdapter}. */
export interface WireAdapterOptions {
  readonly request: ExchangeRequest;
  /** The gateway's id of the call, a UUID. */
  readonly callId: string;
  readonly accountId: string;
  /** The state that outlives a call. */
  readonly state: CallState;
}

/** Members of the responses style that the gateway implements itself: dropping them loses nothing. */
const gatewayMembers: ReadonlySet<string> = new Set(["store", "metadata", "previous_response_id"]);

export class WireAdapter extends CallAdapter<Buffer> {
  readonly #options: WireAdapterOptions;

  constructor(options: WireAdapterOptions) {
    super();
    this.#options = options;
  }

  get path(): string {
    return this.#options.request.path;
  }

  read(): WireRequest {
    const { request } = this.#options;
    checkRequest(request);
    const { body, headers } = request;
    const header = headers["x-uas-route"];
    const wishes =
      header === undefined ? noWishes : { preferences: readPreferences(header, "x-uas-route") };
    const plain = { body, sent: undefined, previous: undefined, wishes };
    const read = new WireRequest(this.#options, plain);
    if (!hasRoutingMembers(read.text.outline)) return read;
    const { body: rest, ...taken } = takeRoutingMembers(body, read.text.outline);
    const { preferences = taken.preferences } = wishes;
    return new WireRequest(this.#options, {
      ...plain,
      body: rest,
      wishes: { ...taken, preferences },
    });
  }

  modelName(): string {
    const { body, platformAliases } = this.#options.request;
    return namedModel(body, platformAliases ? ["model", "modelKey"] : ["model"]);
  }
}

/** The body to send, and facts of the body that the client sent. */
interface RequestBody {
  /** The body with its references resolved. */
  readonly body: Uint8Array;
  /** The outline of the client's body; `undefined` while `body` is the client's. */
  readonly sent: Outline | undefined;
  /** The continued response, once its conversation is in the body; `undefined`: none. */
  readonly previous: string | undefined;
  /** Bytes that the vendor has stored and its model reads. Default 0. */
  readonly storedBytes?: number;
  /** What the request says about routing. */
  readonly wishes: RoutingWishes;
}

const noWishes: RoutingWishes = {};

/** A request in a wire style that has been read. */
export class WireRequest extends ReadRequest<Buffer> {
  readonly text: TextRequest & Pick<RequestSummary, "storedBytes">;
  override readonly dialect: Dialect;
  override readonly query: string;
  override readonly isLimitRequired: boolean;
  override readonly droppedOfReply: string[] = [];
  override readonly wishes: RoutingWishes;
  readonly #options: WireAdapterOptions;
  readonly #style: TextDialect;
  readonly #read: RequestBody;
  readonly #created = secondsSince1970();
  /** Set only where a reply is translated for a client whose style cannot carry reasoning. */
  #collector: ReasoningCollector | undefined;
  #generation: Generation | undefined;

  /** @throws GatewayError INVALID_REQUEST */
  constructor(options: WireAdapterOptions, read: RequestBody) {
    super();
    const { dialect, query, alwaysStream, platformAliases } = options.request;
    this.#options = options;
    this.#read = read;
    this.wishes = read.wishes;
    this.#style = styleOf(dialect);
    this.dialect = dialect;
    this.query = query;
    this.isLimitRequired = this.#style.isLimitRequired === true;
    const text = this.#style.readRequest(read.body, { alwaysStream, platformAliases });
    const { storedBytes = 0 } = read;
    this.text =
      storedBytes === 0 ? text : { ...text, bytes: text.bytes + storedBytes, storedBytes };
  }

  override conversation(): Conversation | undefined {
    const { headers } = this.#options.request;
    return conversationOf(asBuffer(this.#read.body), this.text.outline, headers);
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
      return storeResponse(state.responses, {
        accountId,
        model: this.text.model,
        request: request.body,
        outline: this.#read.sent ?? this.text.outline,
        last,
        vendor: dialect === this.dialect ? storageOf(planned) : undefined,
      });
    }
    const stored = this.#collector?.sealed();
    if (stored === undefined) return undefined;
    return state.reasoning.keep(accountId, stored.callIds, stored.json).then(() => {});
  }

  prepare(model: ModelConfig, planned: PlannedRoute): PreparedCall {
    const { text } = this;
    const { body } = this.#read;
    const { headers: sentHeaders, strict } = this.#options.request;
    const headers = forwarded(sentHeaders, this.#style.forwardedHeaders);
    const isOwn = planned.dialect === this.dialect;
    const { maxToolCalls } = model;
    const rules = { hasPrice: pricedUnits(model), maxToolCalls };
    const { outline } = text;
    const asked = isOwn && this.#style.guard?.(body, { ...rules, isVerified: true, outline });
    if (isOwn && !this.#style.carriesSeals?.(body)) {
      const source = asBuffer(body);
      const features = asked || undefined;
      const sent = text.forVendor(planned.route, features?.edits);
      return { headers, body: sent, source, dropped: [], features };
    }
    const { encoded, features } = this.#encoded(planned, {
      model: planned.route.model,
      stream: text.stream,
      limitParameter: planned.route.limitParameter,
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
    const sentBody = applyEdits(encoded.body, features?.edits ?? []);
    return { headers: sent, body: sentBody, size: () => encoded.outline(), dropped, features };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    if (planned.dialect === this.dialect) {
      return this.#style.relayReply(body, this.#relayOptions(planned));
    }
    const translate = this.text.stream ? translateToStream : translateReply;
    return translate(body, this.#translation(planned));
  }

  stream(planned: PlannedRoute): StreamRelay {
    if (planned.dialect === this.dialect) {
      return this.#style.relayStream(this.#relayOptions(planned));
    }
    if (!this.text.stream) throw new UnreadableReplyError("a stream, not requested");
    return new TranslatedStream(this.#translation(planned));
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
    return dialect === this.dialect ? body : toVendorError({ status, body, error }, dialect);
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
    { dialect, vendorUrl }: PlannedRoute,
    { rules, ...target }: RequestTarget & { readonly rules: FeatureRules },
  ): {
    readonly encoded: EncodedRequest;
    readonly features: BilledFeatures | undefined;
  } {
    const generation = this.#decoded();
    try {
      const codec = vendorDialect(dialect);
      const encoded = codec.encodeRequest(generation, target);
      const features = codec.guard?.(encoded.body, {
        ...rules,
        isVerified: true,
        vendorUrl,
        outline: encoded.outline(),
      });
      return { encoded, features };
    } catch (error) {
      throw withMemberName(this.#style.memberNames, error);
    }
  }

  #translation({ dialect }: PlannedRoute): Translation {
    const generation = this.#decoded();
    if (this.dialect === Dialect.CHAT_COMPLETIONS) this.#collector ??= new ReasoningCollector();
    return {
      vendor: vendorDialect(dialect),
      caller: this.#style,
      tools: toolRestorer(generation),
      watcher: this.#collector,
      charged: (reported, textBytes) => {
        const inputTokens = reported === undefined ? this.#typicalTokens() : 0;
        return this.meter({ reported, inputTokens, textBytes, isComplete: true }).usage;
      },
      options: {
        model: this.#shownModel,
        callId: this.#options.callId.replaceAll("-", ""),
        created: this.#created,
        now: secondsSince1970,
        inputTokens: this.#typicalTokens(),
        generation: this.#withPreviousId(generation),
        onDropped: (name) => {
          // The collector stores the seal for the client: it is not lost.
          if (name === "reasoning.seal" && this.#collector !== undefined) return;
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

  /** What the reply repeats: the request as the client sent it. */
  #withPreviousId(asked: Generation): Generation {
    const { previous } = this.#read;
    const { reportCost } = this.#options.request;
    // The cost is a member of the usage.
    const generation = reportCost ? { ...asked, includeUsage: true } : asked;
    if (previous === undefined) return generation;
    const json = JSON.stringify(previous);
    const extra = create(ExtraSchema, { name: "previous_response_id", json });
    return { ...generation, extras: [...generation.extras, extra] };
  }

  /** The decoded request: decoded once, and only where a vendor speaks another style. */
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

function secondsSince1970(): number {
  return Math.floor(Date.now() / 1000);
}

/** Where a vendor has stored a response: `vendor`, or `vendor#credential` where the vendor has several. */
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
