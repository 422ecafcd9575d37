/** The parts that requests with one JSON body share, whose vendors speak the caller's form: bytes in, bytes out. */
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import { type ModelType, ModelTypeSchema } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import { chatCompletions } from "../../dialect/chat-completions/dialect.ts";
import { type ModelBody, namedModel } from "../../dialect/body-members.ts";
import {
  isRecord,
  type JsonRecord,
  parseRecord,
  recordAt,
  textAt,
} from "../../dialect/json/value.ts";
import type { OperationName } from "../../vendor/vendor.ts";
import { checkRequest, forwarded, replyHeaders, type WireRequest } from "../headers.ts";
import {
  CallAdapter,
  type PlannedRoute,
  type PreparedCall,
  ReadRequest,
  type ReplyHead,
  type ReplyStream,
  type VendorRefusal,
} from "../pipeline/adapter.ts";
import { unusableReply } from "../pipeline/failures.ts";

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

  prepare(_model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    const headers = forwarded(this.#headers, chatCompletions.forwardedHeaders);
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

  /** The public model name, where the vendor has another one. */
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

/** A vendor's refusal: its own body where it has the caller's form, else an error with its message (R-ERR-4). */
function refusalInStyle(
  { status, body, error }: VendorRefusal,
  dialect: Dialect,
): Buffer | GatewayError {
  const told = parseRecord(body.toString("utf8"));
  if (told === undefined) return error;
  const inner = recordAt(told, "error") ?? {};
  const isOpenai = textAt(inner, "message") !== "";
  const isRerank = dialect !== Dialect.CHAT_COMPLETIONS;
  if (isRerank ? textAt(told, "message") !== "" : isOpenai && typeof inner["code"] !== "number") {
    return body;
  }
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
