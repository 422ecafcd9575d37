/** Requests and replies in a wire style: passed on as they are, or translated. */
import { asBuffer } from "../bytes.ts";
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeRequest } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { ExtraSchema } from "../../gen/uas/inference/v1/conversation_pb.ts";
import type { Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { type EncodedRequest, type RequestTarget, UnreadableReplyError } from "../dialect/codec.ts";
import type { RelayOptions, StreamRelay, TextDialect, TextRequest } from "../dialect/dialect.ts";
import { textDialects } from "../dialect/index.ts";
import {
  type Translation,
  TranslatedStream,
  translateReply,
  translateToStream,
} from "../dialect/translate.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import type { Outline } from "../dialect/json/outline.ts";
import { namedModel } from "../dialect/model-body.ts";
import {
  inWordsOf,
  nameIn,
  refuseDropped,
  toolRestorer,
  vendorDialect,
  vendorFault,
} from "./crossing.ts";
import type {
  Door,
  PlannedRoute,
  PreparedCall,
  Recalled,
  Refused,
  ReplyHead,
  WholeReply,
} from "./door.ts";
import { checkRequest, forwarded, memberList, replyHeaders } from "./headers.ts";
import { estimateTokens } from "./metering.ts";
import type { CallState } from "./state/call-state.ts";
import { ReasoningCollector, recallReasoning } from "./state/reasoning-memory.ts";
import {
  keepResponse,
  keptElsewhere,
  type RecalledRequest,
  recallResponses,
} from "./state/responses-memory.ts";

/** What a door needs beside the request. */
export interface WireDoorOptions {
  readonly request: ExchangeRequest;
  /** Our id of the call, a UUID. */
  readonly callId: string;
  /** Whose call it is. */
  readonly accountId: string;
  /** What is kept between calls. */
  readonly state: CallState;
}

/** Members of responses that the gateway itself honours: no vendor needs them. */
const honoured: ReadonlySet<string> = new Set(["store", "metadata", "previous_response_id"]);

export class WireDoor implements Door<Buffer> {
  readonly droppedOfReply: string[] = [];
  readonly #request: ExchangeRequest;
  readonly #callId: string;
  readonly #accountId: string;
  readonly #state: CallState;
  /** Only where a reply is translated for a client that has no place for reasoning. */
  #collector: ReasoningCollector | undefined;
  /** The request's body, with what it refers to in its place. */
  #body: Uint8Array;
  /** The outline of the body as the client sent it, once another stands in its place. */
  #sent: Outline | undefined;
  /** The response that the request continues, once its conversation is in the body. */
  #previous: string | undefined;
  readonly #created = Math.floor(Date.now() / 1000);
  #text: TextRequest | undefined;
  #generation: Generation | undefined;

  constructor({ request, callId, accountId, state }: WireDoorOptions) {
    this.#request = request;
    this.#callId = callId;
    this.#accountId = accountId;
    this.#state = state;
    this.#body = request.body;
  }

  get dialect(): Dialect {
    return this.#request.dialect;
  }

  get isLimitRequired(): boolean {
    return this.#style.isLimitRequired === true;
  }

  get path(): string {
    return this.#request.path;
  }

  get query(): string {
    return this.#request.query;
  }

  get #style(): TextDialect {
    const style = textDialects.get(this.#request.dialect);
    if (style !== undefined) return style;
    throw new GatewayError(
      ErrorCode.INVALID_REQUEST,
      "dialect: name one that carries text generation",
    );
  }

  read(): TextRequest {
    checkRequest(this.#request);
    return this.#readBody();
  }

  named(): string {
    const { body, platformAliases } = this.#request;
    return namedModel(body, platformAliases ? ["model", "modelKey"] : ["model"]);
  }

  recall(routes: readonly PlannedRoute[]): Promise<Recalled> | undefined {
    if (this.dialect === Dialect.RESPONSES) {
      const { responses } = this.#state;
      const sent = { body: this.#body, outline: this.#known().outline };
      const recalled = recallResponses(responses, this.#accountId, sent);
      return recalled?.then((found) => this.#takeRecalled(found, routes));
    }
    const [first] = routes;
    const isForeign = first !== undefined && first.dialect !== this.dialect;
    if (this.dialect !== Dialect.CHAT_COMPLETIONS || !isForeign) return undefined;
    return recallReasoning(this.#state.reasoning, this.#accountId, this.#decoded())?.then(() => ({
      routes,
      text: this.#known(),
    }));
  }

  keep(last: Buffer, { route, dialect }: PlannedRoute): Promise<void> | undefined {
    const { responses, reasoning } = this.#state;
    if (this.dialect === Dialect.RESPONSES) {
      return keepResponse(responses, {
        accountId: this.#accountId,
        model: this.#known().model,
        request: this.#request.body,
        outline: this.#sent ?? this.#known().outline,
        last,
        vendor: dialect === this.dialect ? route.vendor : undefined,
      });
    }
    const kept = this.#collector?.kept();
    if (kept === undefined) return undefined;
    return reasoning.keep(this.#accountId, kept.callIds, kept.json).then(() => {});
  }

  prepare(model: ModelConfig, planned: PlannedRoute): PreparedCall {
    const text = this.#known();
    const headers = forwarded(this.#request.headers, this.#style.forwardedHeaders);
    const isOwn = planned.dialect === this.dialect;
    if (isOwn) this.#style.guard?.(this.#body, { isVerified: true, outline: text.outline });
    if (isOwn && !this.#style.carriesSeals?.(this.#body)) {
      const source = asBuffer(this.#body);
      return { headers, body: text.forVendor(planned.route.model), source, dropped: [] };
    }
    const encoded = this.#encoded(planned, {
      model: planned.route.model,
      stream: text.stream,
      maxOutputTokens: model.maxOutputTokens,
      sourceDialect: this.dialect,
    });
    const dropped = encoded.dropped
      .filter((name) => this.dialect !== Dialect.RESPONSES || !honoured.has(name))
      .map((name) => nameIn(this.#style.memberNames, name));
    if (this.#request.strict) refuseDropped(dropped);
    // In its own style the client's headers count, as they do where the body is relayed.
    const sent = isOwn ? { ...encoded.headers, ...headers } : encoded.headers;
    return { headers: sent, body: [encoded.body], dropped };
  }

  #encoded({ dialect, vendorUrl }: PlannedRoute, target: RequestTarget): EncodedRequest {
    const generation = this.#decoded();
    try {
      const codec = vendorDialect(dialect);
      const encoded = codec.encodeRequest(generation, target);
      if (dialect !== this.dialect)
        codec.guard?.(encoded.body, { isVerified: true, vendorUrl, outline: encoded.outline() });
      return encoded;
    } catch (error) {
      throw inWordsOf(this.#style.memberNames, error);
    }
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    if (planned.dialect === this.dialect) {
      return this.#style.relayReply(body, this.#relayOptions(planned));
    }
    const translate = this.#known().stream ? translateToStream : translateReply;
    return translate(body, this.#translation(planned));
  }

  stream(planned: PlannedRoute, mayStop: boolean): StreamRelay {
    if (planned.dialect !== this.dialect && !this.#known().stream) {
      throw new UnreadableReplyError("a stream, not asked for");
    }
    return planned.dialect === this.dialect
      ? this.#style.relayStream({ ...this.#relayOptions(planned), mayStop })
      : new TranslatedStream(this.#translation(planned));
  }

  headers({ upstream, length, dropped, isRelayed }: ReplyHead): Record<string, string> {
    const isStream = length === undefined || (!isRelayed && this.#known().stream);
    const headers = replyHeaders(upstream, isStream ? undefined : length);
    if (dropped.length > 0) headers["x-uas-dropped"] = memberList(dropped);
    if (isRelayed) return headers;
    headers["content-type"] = isStream ? "text/event-stream; charset=utf-8" : "application/json";
    return headers;
  }

  refusal({ status, body, error }: Refused, { dialect }: PlannedRoute): Buffer | GatewayError {
    return dialect === this.dialect ? body : vendorFault({ status, body, error }, dialect);
  }

  #relayOptions({ route }: PlannedRoute): RelayOptions {
    const text = this.#known();
    return {
      publicModel: route.model === text.model ? undefined : text.model,
      hideUsage: text.stream && !text.wantsUsage,
      choices: text.choices,
    };
  }

  #translation({ dialect }: PlannedRoute): Translation {
    const text = this.#known();
    const generation = this.#decoded();
    if (this.dialect === Dialect.CHAT_COMPLETIONS) this.#collector ??= new ReasoningCollector();
    return {
      vendor: vendorDialect(dialect),
      caller: this.#style,
      tools: toolRestorer(generation),
      watcher: this.#collector,
      options: {
        model: text.model,
        callId: this.#callId.replaceAll("-", ""),
        created: this.#created,
        inputTokens: Math.max(1, estimateTokens(text.bytes)),
        generation: this.#echoed(generation),
        onDropped: (name) => {
          // What has no place in a chat client is kept here, where it matters.
          if (name === "reasoning.seal" && this.#collector !== undefined) return;
          if (!this.droppedOfReply.includes(name)) this.droppedOfReply.push(name);
        },
      },
    };
  }

  /** What the reply repeats: the request as the client sent it. */
  #echoed(generation: Generation): Generation {
    if (this.#previous === undefined) return generation;
    const json = JSON.stringify(this.#previous);
    const extra = create(ExtraSchema, { name: "previous_response_id", json });
    return { ...generation, extras: [...generation.extras, extra] };
  }

  /** The request in full: read once, and only where a vendor speaks another style. */
  #decoded(): Generation {
    const { platformAliases } = this.#request;
    const { outline } = this.#known();
    this.#generation ??= this.#style.decodeRequest(this.#body, { platformAliases, outline });
    return this.#generation;
  }

  #readBody(): TextRequest {
    const { alwaysStream, platformAliases } = this.#request;
    this.#text = this.#style.readRequest(this.#body, { alwaysStream, platformAliases });
    return this.#text;
  }

  #takeRecalled(
    { body, vendor, previous, keptBytes }: RecalledRequest,
    routes: readonly PlannedRoute[],
  ): Recalled {
    this.#sent = this.#known().outline;
    this.#body = body;
    this.#previous = previous;
    const read = this.#readBody();
    const text = { ...read, bytes: read.bytes + keptBytes, keptBytes };
    if (vendor === undefined) return { routes, text };
    const able = routes.filter(
      (planned) => planned.route.vendor === vendor && planned.dialect === this.dialect,
    );
    if (able.length === 0) throw keptElsewhere(vendor);
    return { routes: able, text };
  }

  #known(): TextRequest {
    if (this.#text === undefined) throw new Error("not read yet");
    return this.#text;
  }
}
