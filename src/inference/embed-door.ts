/** Requests for embeddings: bytes in OpenAI's form, passed on as they are. */
import { Dialect } from "../../gen/uas/http/v1/http_pb.ts";
import type { EmbedRequest } from "../../gen/uas/inference/v1/inference_service_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { chatCompletions } from "../dialect/chat-completions/dialect.ts";
import { relayEmbeddings } from "../dialect/embeddings.ts";
import { type ModelBody, namedModel, readModelBody } from "../dialect/model-body.ts";
import type {
  AskedText,
  Door,
  PlannedRoute,
  PreparedCall,
  Refused,
  ReplyHead,
  ReplyStream,
  WholeReply,
} from "./door.ts";
import { unusable } from "./failures.ts";
import { checkRequest, forwarded, replyHeaders } from "./headers.ts";
import { meterInput } from "./metering.ts";

export class EmbedDoor implements Door<Buffer> {
  readonly dialect = Dialect.CHAT_COMPLETIONS;
  readonly operation = "embed";
  readonly meter = meterInput;
  readonly droppedOfReply: readonly string[] = [];
  readonly #request: EmbedRequest;
  #body: ModelBody | undefined;

  constructor(request: EmbedRequest) {
    this.#request = request;
  }

  get path(): string {
    return this.#request.path;
  }

  get query(): string {
    return this.#request.query;
  }

  read(): AskedText {
    checkRequest(this.#request);
    this.#body = readModelBody(this.#request.body, ["input"]);
    const { model, bytes } = this.#body;
    return { model, stream: false, maxOutputTokens: 0, choices: 1, bytes: bytes.length };
  }

  named(): string {
    return namedModel(this.#request.body, ["model"]);
  }

  prepare(_model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    const headers = forwarded(this.#request.headers, chatCompletions.forwardedHeaders);
    return { headers, body: this.#known().forVendor(route.model), dropped: [] };
  }

  whole(body: Buffer, { route }: PlannedRoute): WholeReply<Buffer> {
    const { model } = this.#known();
    const relayed = relayEmbeddings(body, route.model === model ? undefined : model);
    return { ...relayed, textBytes: 0 };
  }

  stream(): ReplyStream<Buffer> {
    throw unusable("a stream of events for embeddings");
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    return replyHeaders(upstream, length);
  }

  refusal({ body }: Refused): Buffer {
    return body;
  }

  #known(): ModelBody {
    if (this.#body === undefined) throw new Error("not read yet");
    return this.#body;
  }
}
