/**
 * The parts that requests for images and audio in OpenAI's form share, relayed to vendors that
 * speak it.
 */
import { Dialect } from "../../../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeMediaRequest } from "../../../../gen/uas/inference/v1/media_service_pb.ts";
import type { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../../../config/config.ts";
import type { CancelSignal } from "../../../core/cancel-signal.ts";
import { emptyBuffer } from "../../../core/bytes.ts";
import type { GatewayError } from "../../../core/errors.ts";
import { chatCompletions } from "../../../dialect/chat-completions/dialect.ts";
import { type ModelBody, namedModel } from "../../../dialect/body-members.ts";
import type { MediaOperationName, Vendor } from "../../../provider/vendor.ts";
import type { VendorReply } from "../../../provider/reply.ts";
import { checkRequest, vendorHeaders, replyHeaders } from "../headers.ts";
import { asJob } from "../job-reply.ts";
import { refusalInStyle, requireType } from "../operations.ts";
import {
  CallAdapter,
  type CostWriter,
  ReadRequest,
  type Repetition,
  repetitionOfBytes,
  type ReplyHead,
  type VendorRefusal,
} from "../../pipeline/adapter.ts";
import { type PlannedRoute } from "../../../routing/planned-route.ts";
import { type PreparedCall } from "../../../routing/prepared-call.ts";
import type { Upload } from "./upload.ts";

/** A request, and its form if it has one. */
export interface MediaInput {
  readonly request: ExchangeMediaRequest;
  /** Absent if the body is JSON. */
  readonly upload?: Upload | undefined;
}

/** A request before it is read. */
export class MediaAdapter<Read extends MediaRequest> extends CallAdapter<Buffer> {
  override readonly acceptsAnyModel = true;
  readonly #input: MediaInput;
  readonly #read: (input: MediaInput) => Read;

  /** @param read reads the body @throws GatewayError INVALID_REQUEST */
  constructor(input: MediaInput, read: (input: MediaInput) => Read) {
    super();
    this.#input = input;
    this.#read = read;
  }

  get path(): string {
    return this.#input.request.path;
  }

  /** A repeated form is a new call: its files are not in memory. */
  override get repetition(): Repetition<Buffer> | undefined {
    const { request, upload } = this.#input;
    return upload === undefined ? repetitionOfBytes(request.query, request.body) : undefined;
  }

  read(): Read {
    const { request, upload } = this.#input;
    if (upload?.problem !== undefined) throw upload.problem;
    checkRequest(upload === undefined ? request : { ...request, body: emptyBuffer });
    return this.#read(this.#input);
  }

  modelName(): string {
    const { request, upload } = this.#input;
    return upload?.field("model") ?? namedModel(request.body, ["model"]);
  }
}

/** A request that has been read. */
export abstract class MediaRequest extends ReadRequest<Buffer> {
  override readonly dialect = Dialect.CHAT_COMPLETIONS;
  abstract override readonly operation: MediaOperationName;
  override readonly query: string;
  /** The body, which names its model. */
  abstract readonly body: Pick<ModelBody, "model"> & Partial<ModelBody>;
  /** The type of models that serve it. */
  protected abstract readonly modelType: ModelType;
  /** Whether the vendor may be working and billing without an answer. Default false. */
  protected readonly isJob: boolean = false;
  readonly #request: ExchangeMediaRequest;
  readonly #upload: Upload | undefined;

  constructor({ request, upload }: MediaInput) {
    super();
    this.query = request.query;
    this.#request = request;
    this.#upload = upload;
  }

  override checkModel(model: ModelConfig): void {
    requireType(model, [this.modelType]);
  }

  prepare(_model: ModelConfig, { route, unknownBetas }: PlannedRoute): PreparedCall {
    const headers = vendorHeaders(this.#request.headers, chatCompletions, { unknownBetas });
    const body = this.body.forVendor?.(route.model) ?? [];
    const form = this.#upload?.forVendor(route.model);
    const { dialect, query, operation, isJob } = this;
    const { stream } = this.text;
    const call = { dialect, model: route.model, query, headers, body, stream };
    const send = (vendor: Vendor, signal: CancelSignal): Promise<VendorReply> => {
      const { [operation]: asked } = vendor;
      if (asked === undefined) throw new TypeError(`${vendor.name} has no ${operation}`);
      const sent = asked.send({ ...call, ...form, signal });
      return isJob ? asJob(sent) : sent;
    };
    return { headers, body, dropped: [], send };
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    return replyHeaders(upstream, length);
  }

  refusal(refused: VendorRefusal): Buffer | GatewayError {
    return refusalInStyle(refused, Dialect.CHAT_COMPLETIONS);
  }

  /** Streams have no place for the cost. */
  override costWriter(): CostWriter<Buffer> | undefined {
    return this.#request.reportCost && !this.text.stream ? costInHead : undefined;
  }
}

/** Puts the cost into the header only. */
const costInHead: CostWriter<Buffer> = {
  whole: (body) => body,
  write: (out) => out,
  rest: () => Buffer.alloc(0),
};
