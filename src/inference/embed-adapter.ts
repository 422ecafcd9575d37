/** Embeddings requests: bytes in OpenAI's form, relayed unchanged. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { EmbedRequest } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { chatCompletions } from "../dialect/chat-completions/dialect.ts";
import { relayEmbeddings } from "../dialect/embeddings.ts";
import { type ModelBody, namedModel, readModelBody } from "../dialect/body-members.ts";
import {
  type RequestSummary,
  CallAdapter,
  type PlannedRoute,
  type PreparedCall,
  ReadRequest,
  type VendorRefusal,
  type ReplyHead,
  type ReplyStream,
  type WholeReply,
} from "./pipeline/adapter.ts";
import { unusableReply } from "./pipeline/failures.ts";
import { checkRequest, forwarded, replyHeaders } from "./headers.ts";
import { type Delivered, type Metered, meterInput } from "./metering.ts";

export class EmbedAdapter extends CallAdapter<Buffer> {
  override readonly acceptsAnyModel = true;
  readonly #request: EmbedRequest;

  constructor(request: EmbedRequest) {
    super();
    this.#request = request;
  }

  get path(): string {
    return this.#request.path;
  }

  read(): EmbeddingsRequest {
    checkRequest(this.#request);
    return new EmbeddingsRequest(this.#request, readModelBody(this.#request.body, ["input"]));
  }

  modelName(): string {
    return namedModel(this.#request.body, ["model"]);
  }
}

/** An embeddings request that has been read. */
class EmbeddingsRequest extends ReadRequest<Buffer> {
  override readonly dialect = Dialect.CHAT_COMPLETIONS;
  override readonly operation = "embed";
  override readonly query: string;
  readonly text: RequestSummary;
  readonly #headers: EmbedRequest["headers"];
  readonly #body: ModelBody;

  constructor({ query, headers }: EmbedRequest, body: ModelBody) {
    super();
    this.query = query;
    this.#headers = headers;
    this.#body = body;
    const { model, bytes } = body;
    this.text = { model, stream: false, maxOutputTokens: 0, choices: 1, bytes: bytes.length };
  }

  prepare(model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    checkType(model);
    const headers = forwarded(this.#headers, chatCompletions.forwardedHeaders);
    return { headers, body: this.#body.forVendor(route.model), dropped: [] };
  }

  whole(body: Buffer, { route }: PlannedRoute): WholeReply<Buffer> {
    const { model } = this.#body;
    const relayed = relayEmbeddings(body, route.model === model ? undefined : model);
    return { ...relayed, textBytes: 0 };
  }

  stream(): ReplyStream<Buffer> {
    throw unusableReply("an event stream for an embeddings request");
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    return replyHeaders(upstream, length);
  }

  refusal({ body }: VendorRefusal): Buffer {
    return body;
  }

  override meter(delivered: Delivered): Metered {
    return meterInput(delivered);
  }
}

/** Embeddings come from models of their own type, or from TEXT models whose vendors make them. */
function checkType({ key, type }: ModelConfig): void {
  if (type === ModelType.EMBEDDING || type === ModelType.TEXT) return;
  const text = `The model \`${key}\` makes no embeddings: name one of type EMBEDDING`;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "model" });
}
