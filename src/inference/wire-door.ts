/** Requests and replies in a wire style: passed on as they are, or translated. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeRequest } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { Generation } from "../../gen/uas/inference/v1/generate_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import type { RelayOptions, StreamRelay, TextDialect, TextRequest } from "../dialect/dialect.ts";
import { textDialects } from "../dialect/index.ts";
import {
  type Translation,
  TranslatedStream,
  translateReply,
  translateToStream,
} from "../dialect/translate.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { carriesSeals } from "../dialect/seal.ts";
import { refuseDropped, toolRestorer, vendorDialect, vendorFault } from "./crossing.ts";
import type { Door, PlannedRoute, PreparedCall, Refused, ReplyHead, WholeReply } from "./door.ts";
import { checkRequest, forwarded, replyHeaders } from "./headers.ts";
import { estimateTokens } from "./metering.ts";

/** What a door needs beside the request. */
export interface WireDoorOptions {
  readonly request: ExchangeRequest;
  /** Our id of the call, a UUID. */
  readonly callId: string;
}

export class WireDoor implements Door<Buffer> {
  readonly droppedOfReply: string[] = [];
  readonly #request: ExchangeRequest;
  readonly #callId: string;
  readonly #created = Math.floor(Date.now() / 1000);
  #text: TextRequest | undefined;
  #generation: Generation | undefined;

  constructor({ request, callId }: WireDoorOptions) {
    this.#request = request;
    this.#callId = callId;
  }

  get dialect(): Dialect {
    return this.#request.dialect;
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
    const { alwaysStream, platformAliases, body } = this.#request;
    checkRequest(this.#request);
    this.#text = this.#style.readRequest(body, { alwaysStream, platformAliases });
    return this.#text;
  }

  prepare(model: ModelConfig, { route, dialect }: PlannedRoute): PreparedCall {
    const text = this.#known();
    const headers = forwarded(this.#request.headers, this.#style.forwardedHeaders);
    const isOwn = dialect === this.dialect;
    if (isOwn && !carriesSeals(this.#request.body)) {
      return { headers, body: text.forVendor(route.model), dropped: [] };
    }
    const encoded = vendorDialect(dialect).encodeRequest(this.#decoded(), {
      model: route.model,
      stream: text.stream,
      maxOutputTokens: model.maxOutputTokens,
      sourceDialect: this.dialect,
    });
    const dropped = encoded.dropped.map((name) => this.#style.memberNames[name] ?? name);
    if (this.#request.strict) refuseDropped(dropped);
    // In its own style the client's headers count, as they do where the body is relayed.
    const sent = isOwn ? { ...encoded.headers, ...headers } : encoded.headers;
    return { headers: sent, body: [encoded.body], dropped };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    if (planned.dialect === this.dialect) {
      return this.#style.relayReply(body, this.#relayOptions(planned));
    }
    const translate = this.#known().stream ? translateToStream : translateReply;
    return translate(body, this.#translation(planned));
  }

  stream(planned: PlannedRoute): StreamRelay {
    return planned.dialect === this.dialect
      ? this.#style.relayStream(this.#relayOptions(planned))
      : new TranslatedStream(this.#translation(planned));
  }

  headers({ upstream, length, dropped, isRelayed }: ReplyHead): Record<string, string> {
    const isStream = length === undefined || (!isRelayed && this.#known().stream);
    const headers = replyHeaders(upstream, isStream ? undefined : length);
    if (dropped.length > 0) headers["x-uas-dropped"] = dropped.join(", ");
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
    return {
      vendor: vendorDialect(dialect),
      caller: this.#style,
      tools: toolRestorer(generation),
      options: {
        model: text.model,
        callId: this.#callId.replaceAll("-", ""),
        created: this.#created,
        inputTokens: Math.max(1, estimateTokens(text.bytes)),
        generation,
        onDropped: (name) => {
          if (!this.droppedOfReply.includes(name)) this.droppedOfReply.push(name);
        },
      },
    };
  }

  /** The request in full: read once, and only where a vendor speaks another style. */
  #decoded(): Generation {
    const { body, platformAliases } = this.#request;
    this.#generation ??= this.#style.decodeRequest(body, { platformAliases });
    return this.#generation;
  }

  #known(): TextRequest {
    if (this.#text === undefined) throw new Error("not read yet");
    return this.#text;
  }
}
