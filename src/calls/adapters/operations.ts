/**
 * Requests with one JSON body whose vendors speak the caller's form: embeddings, rerank,
 * moderations and legacy completions. Bytes in, bytes out.
 */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { ModelType, ModelTypeSchema } from "../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSchema, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import { type ModelBody, namedModel, readModelBody } from "../../dialect/body-members.ts";
import { chatCompletions } from "../../dialect/chat-completions/dialect.ts";
import {
  type CompletionBody,
  type CompletionRelayOptions,
  CompletionStreamRelay,
  readCompletionBody,
  relayCompletion,
} from "../../dialect/operations/completions.ts";
import {
  asksForBase64,
  readInputUsage,
  relayEmbeddings,
} from "../../dialect/operations/embeddings.ts";
import { relayJsonReply } from "../../dialect/json-reply.ts";
import {
  isRecord,
  type JsonRecord,
  parseRecord,
  recordAt,
  textAt,
  UnreadableReplyError,
} from "../../wire/json/value.ts";
import {
  documentsPerSearch,
  readRerankBody,
  relayRerank,
  type RerankBody,
} from "../../dialect/operations/rerank.ts";
import { relayOpenaiError } from "../../dialect/vendor-error.ts";
import type { OperationName } from "../../provider/vendor.ts";
import { checkRequest, replyHeaders, vendorHeaders, type WireRequest } from "./headers.ts";
import { type Delivered, type Metered, meterInput, nothingMetered } from "../pipeline/metering.ts";
import {
  CallAdapter,
  ReadRequest,
  type Repetition,
  repetitionOfBytes,
  type ReplyHead,
  type ReplyStream,
  type RequestSummary,
  type VendorRefusal,
  type WholeReply,
} from "../pipeline/adapter.ts";
import { type PlannedRoute } from "../../routing/planned-route.ts";
import { type PreparedCall } from "../../routing/prepared-call.ts";
import { unusableReply } from "../../routing/upstream-refusal.ts";

/** A request as it comes. */
export interface BodyMessage extends WireRequest {
  readonly path: string;
}

/** A request before it is read. */
export class BodyAdapter<Message extends BodyMessage> extends CallAdapter<Buffer> {
  override readonly acceptsAnyModel = true;
  readonly #message: Message;
  readonly #read: (message: Message) => BodyRequest;

  /** @param read reads the body @throws GatewayError INVALID_REQUEST */
  constructor(message: Message, read: (message: Message) => BodyRequest) {
    super();
    this.#message = message;
    this.#read = read;
  }

  get path(): string {
    return this.#message.path;
  }

  override get repetition(): Repetition<Buffer> {
    return repetitionOfBytes(this.#message.query, this.#message.body);
  }

  read(): BodyRequest {
    checkRequest(this.#message);
    return this.#read(this.#message);
  }

  modelName(): string {
    return namedModel(this.#message.body, ["model"]);
  }
}

/** A request that has been read. */
export abstract class BodyRequest extends ReadRequest<Buffer> {
  override readonly dialect: Dialect = Dialect.CHAT_COMPLETIONS;
  abstract override readonly operation: OperationName;
  override readonly query: string;
  protected abstract readonly body: ModelBody;
  /** The types of models that serve it. The first is the usual one. */
  protected abstract readonly modelTypes: readonly ModelType[];
  readonly #headers: BodyMessage["headers"];

  constructor({ query, headers }: BodyMessage) {
    super();
    this.query = query;
    this.#headers = headers;
  }

  override checkModel(model: ModelConfig): void {
    requireType(model, this.modelTypes);
  }

  prepare(_model: ModelConfig, { route, unknownBetas }: PlannedRoute): PreparedCall {
    const headers = vendorHeaders(this.#headers, chatCompletions, { unknownBetas });
    return { headers, body: this.body.forVendor(route.model), dropped: [] };
  }

  stream(_planned: PlannedRoute): ReplyStream<Buffer> {
    throw unusableReply(`an event stream for ${this.operation}`);
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    return replyHeaders(upstream, length);
  }

  refusal(refused: VendorRefusal): Buffer | GatewayError {
    return refusalInStyle(refused, this.dialect);
  }

  /** The public model name, if the vendor has another one. */
  protected publicModel({ route }: PlannedRoute): string | undefined {
    const { model } = this.body;
    return route.model === model ? undefined : model;
  }
}

/** Refuses a model of another type. @throws GatewayError INVALID_REQUEST */
export function requireType({ key, type }: ModelConfig, types: readonly ModelType[]): void {
  if (types.includes(type)) return;
  const word = ModelTypeSchema.value[types[0] ?? 0]?.localName ?? "";
  throw invalid(
    "model",
    `The model \`${key}\` is not of type ${word}: choose one that is, from GET /api/ai/models`,
  );
}

/**
 * A vendor's refusal: its own body if it has the caller's form, else an error with its message
 * (R-ERR-4).
 */
export function refusalInStyle(
  { status, body, error }: VendorRefusal,
  dialect: Dialect,
): Buffer | GatewayError {
  const told = parseRecord(body.toString("utf8"));
  if (told === undefined) return error;
  const inner = recordAt(told, "error") ?? {};
  const isRerank = dialect !== Dialect.CHAT_COMPLETIONS;
  if (isRerank && textAt(told, "message") !== "") return body;
  const relayed = isRerank ? undefined : relayOpenaiError(body, error);
  if (relayed !== undefined) return relayed;
  const message = textAt(inner, "message") || messageOf(told);
  return message === "" ? error : new GatewayError(error.code, message, { status });
}

/** The message at the top of an error: of Cohere, DashScope and vLLM, and `detail` of Jina. */
function messageOf(told: JsonRecord): string {
  const { detail } = told;
  const [first] = Array.isArray(detail) ? (detail as unknown[]) : [];
  const listed = isRecord(first) ? textAt(first, "msg") : "";
  return textAt(told, "message") || textAt(told, "detail") || textAt(told, "error") || listed;
}

/** A request for embeddings that has been read. */
export class EmbeddingsRequest extends BodyRequest {
  override readonly operation = "embed";
  readonly text: RequestSummary;
  protected readonly body: ModelBody;
  /** TEXT models whose vendors make embeddings serve it, too. */
  protected readonly modelTypes = [ModelType.EMBEDDING, ModelType.TEXT];
  readonly #isBase64: () => boolean;

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: BodyMessage) {
    super(message);
    this.body = readModelBody(message.body, ["input"], { mayBeEmpty: false });
    this.text = inputOnly(this.body);
    this.#isBase64 = () => asksForBase64(message.body);
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const options = { publicModel: this.publicModel(planned), isBase64: this.#isBase64 };
    return { ...relayEmbeddings(body, options), textBytes: 0 };
  }

  override meter(delivered: Delivered): Metered {
    return meterInput(delivered);
  }
}

/** The summary of a request that only reads. */
function inputOnly({ model, bytes }: ModelBody): RequestSummary {
  return { model, stream: false, maxOutputTokens: 0, choices: 1, bytes: bytes.length };
}

/** A request for a completion that has been read. */
export class CompletionRequest extends BodyRequest {
  override readonly operation = "complete";
  readonly text: RequestSummary;
  protected readonly body: CompletionBody;
  protected readonly modelTypes = [ModelType.TEXT];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: BodyMessage) {
    super(message);
    this.body = readCompletionBody(message.body);
    const { model, stream, maxOutputTokens, made, bytes } = this.body;
    this.text = { model, stream, maxOutputTokens, choices: made, bytes: bytes.length };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    return relayCompletion(body, this.#relayOptions(planned));
  }

  override stream(planned: PlannedRoute): ReplyStream<Buffer> {
    return new CompletionStreamRelay(this.#relayOptions(planned));
  }

  #relayOptions(planned: PlannedRoute): CompletionRelayOptions {
    const { stream, wantsUsage, choices, echoed } = this.body;
    return {
      echoed,
      publicModel: this.publicModel(planned),
      hideUsage: stream && !wantsUsage,
      choices,
    };
  }
}

/** The model of a moderation that names none, as with OpenAI: its SDKs do not require one. */
const moderationDefault = "omni-moderation-latest";

/** A request for moderations that has been read. */
export class ModerationsRequest extends BodyRequest {
  override readonly operation = "moderate";
  readonly text: RequestSummary;
  protected readonly body: ModelBody;
  protected readonly modelTypes = [ModelType.MODERATION];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: BodyMessage) {
    super(message);
    this.body = readModelBody(message.body, ["input"], { modelDefault: moderationDefault });
    this.text = inputOnly(this.body);
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const reply = relayJsonReply(body, this.publicModel(planned));
    if (!reply.hasArray("results")) throw new UnreadableReplyError("moderations without results");
    return { body: reply.body, usage: readInputUsage(reply.record("usage")), textBytes: 0 };
  }

  override meter(delivered: Delivered): Metered {
    return meterInput(delivered);
  }
}

/** A request before its style is known from the route. */
interface RerankMessage extends BodyMessage {
  readonly dialect: Dialect;
}

/** A request to rank documents that has been read. */
export class RerankRequest extends BodyRequest {
  override readonly operation = "rerank";
  override readonly dialect: Dialect;
  readonly text: RequestSummary;
  protected readonly body: RerankBody;
  protected readonly modelTypes = [ModelType.RERANK];

  /** @throws GatewayError INVALID_REQUEST */
  constructor(message: RerankMessage) {
    super(message);
    this.dialect = message.dialect;
    const { RERANK, RERANK_V2 } = Dialect;
    if (this.dialect !== RERANK && this.dialect !== RERANK_V2) {
      throw invalid("dialect", "dialect: send one of the two of rerank");
    }
    this.body = readRerankBody(message.body, this.dialect === RERANK_V2);
    const { model, bytes, searchesMax, repeatedBytes } = this.body;
    this.text = {
      model,
      stream: false,
      maxOutputTokens: 0,
      choices: 1,
      bytes: bytes.length + repeatedBytes,
      storedBytes: repeatedBytes,
      units: { searches: searchesMax },
    };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const { searches, ...reply } = relayRerank(body, {
      publicModel: this.publicModel(planned),
      isCohereV2: this.dialect === Dialect.RERANK_V2,
    });
    return { ...reply, textBytes: 0, units: searches === undefined ? undefined : { searches } };
  }

  /**
   * The documents are charged once their order has arrived, or once the vendor has them and the
   * client disconnected.
   */
  override meter({
    reported,
    units,
    inputTokens = 0,
    isComplete,
    isInputOwed,
    price,
  }: Delivered): Metered {
    if (!isComplete && isInputOwed !== true) return nothingMetered;
    const { input, search } = price ?? {};
    const told = units?.searches;
    const isEstimated =
      (input !== undefined && reported === undefined) ||
      (search !== undefined && told === undefined);
    const searches = told ?? Math.ceil(this.body.documents / documentsPerSearch);
    return {
      usage: reported ?? create(UsageSchema, input === undefined ? {} : { inputTokens }),
      source: isEstimated ? UsageSource.ESTIMATED : UsageSource.UPSTREAM,
      units: { searches },
      isCharged: true,
    };
  }
}
