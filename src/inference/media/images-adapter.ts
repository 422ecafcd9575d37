/** Requests for images in OpenAI's form, relayed to vendors that speak it. */
import { create } from "@bufbuild/protobuf";
import { Dialect } from "../../../gen/uas/http/v1/http_pb.ts";
import type { ExchangeMediaRequest } from "../../../gen/uas/inference/v1/media_service_pb.ts";
import { ModelType, ModelTypeSchema } from "../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSchema, UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import type { CancelSignal } from "../../core/cancel-signal.ts";
import { invalid } from "../../core/validation.ts";
import { chatCompletions } from "../../dialect/chat-completions/dialect.ts";
import { namedModel } from "../../dialect/body-members.ts";
import type { RelayOptions } from "../../dialect/dialect.ts";
import {
  type ImagesBody,
  ImagesStreamRelay,
  readImagesBody,
  relayImages,
} from "../../dialect/images.ts";
import type { Vendor } from "../../vendor/vendor.ts";
import type { VendorReply } from "../../vendor/reply.ts";
import { asJob } from "../job-reply.ts";
import { checkRequest, forwarded, replyHeaders } from "../headers.ts";
import { type Delivered, type Metered, meterInput } from "../metering.ts";
import {
  type RequestSummary,
  CallAdapter,
  type CostWriter,
  type PlannedRoute,
  type PreparedCall,
  ReadRequest,
  type VendorRefusal,
  type ReplyHead,
  type ReplyStream,
  type WholeReply,
} from "../pipeline/adapter.ts";

/** The most tokens of one image where its model's configuration says nothing: twice OpenAI's largest. */
const imageTokensMax = 16_384;

/** The tokens of an image whose vendor reports none: OpenAI's medium quality at 1024x1024. */
const imageTokensTypical = 1_056;

export class ImagesAdapter extends CallAdapter<Buffer> {
  override readonly acceptsAnyModel = true;
  readonly #request: ExchangeMediaRequest;

  constructor(request: ExchangeMediaRequest) {
    super();
    this.#request = request;
  }

  get path(): string {
    return this.#request.path;
  }

  read(): ImagesRequest {
    checkRequest(this.#request);
    return new ImagesRequest(this.#request, readImagesBody(this.#request.body));
  }

  modelName(): string {
    return namedModel(this.#request.body, ["model"]);
  }
}

/** A request for images that has been read. */
export class ImagesRequest extends ReadRequest<Buffer> {
  override readonly dialect = Dialect.CHAT_COMPLETIONS;
  override readonly operation = "generateImages";
  override readonly isReadToEnd = true;
  override readonly query: string;
  readonly text: RequestSummary;
  readonly body: ImagesBody;
  readonly #request: ExchangeMediaRequest;

  constructor(request: ExchangeMediaRequest, body: ImagesBody) {
    super();
    this.query = request.query;
    this.#request = request;
    this.body = body;
    const { model, bytes, images, stream } = body;
    this.text = {
      model,
      stream,
      maxOutputTokens: imageTokensMax,
      choices: images,
      bytes: bytes.length,
      units: { images },
    };
  }

  override checkModel(model: ModelConfig): void {
    requireType(model, ModelType.IMAGE);
  }

  prepare(_model: ModelConfig, { route }: PlannedRoute): PreparedCall {
    const headers = forwarded(this.#request.headers, chatCompletions.forwardedHeaders);
    const body = this.body.forVendor(route.model);
    const call = { dialect: this.dialect, model: route.model, query: this.query, headers, body };
    const { stream } = this.body;
    const send = ({ generateImages }: Vendor, signal: CancelSignal): Promise<VendorReply> => {
      if (generateImages === undefined) throw new TypeError("the vendor makes no images");
      return asJob(generateImages.send({ ...call, stream, signal }));
    };
    return { headers, body, dropped: [], send };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const { images, ...reply } = relayImages(body, this.#relayOptions(planned));
    return { ...reply, textBytes: 0, units: { images } };
  }

  stream(planned: PlannedRoute): ReplyStream<Buffer> {
    return new StreamedImages(this.#relayOptions(planned));
  }

  headers({ upstream, length }: ReplyHead): Record<string, string> {
    return replyHeaders(upstream, length);
  }

  refusal({ body }: VendorRefusal): Buffer {
    return body;
  }

  /** Event streams of images have no place for the cost. */
  override costWriter(): CostWriter<Buffer> | undefined {
    return this.#request.reportCost && !this.text.stream ? costInHead : undefined;
  }

  override meter(delivered: Delivered): Metered {
    return meterImages(delivered);
  }

  #relayOptions({ route }: PlannedRoute): RelayOptions {
    const { model, images: choices } = this.body;
    return {
      publicModel: route.model === model ? undefined : model,
      hideUsage: false,
      choices,
    };
  }
}

class StreamedImages extends ImagesStreamRelay {
  get units(): { readonly images: number } {
    return { images: this.images };
  }
}

/** The cost stands in the header only. */
export const costInHead: CostWriter<Buffer> = {
  whole: (body) => body,
  write: (out) => out,
  rest: () => Buffer.alloc(0),
};

/** @throws GatewayError INVALID_REQUEST where the model generates something else */
export function requireType({ key, type }: ModelConfig, wanted: ModelType): void {
  if (type === wanted) return;
  const word = ModelTypeSchema.value[wanted]?.localName ?? "";
  throw invalid(
    "model",
    `The model \`${key}\` is not of type ${word}: choose one that is, from GET /api/ai/models`,
  );
}

/** Images are charged once they are there; their tokens are estimated where the vendor reports none. */
function meterImages(delivered: Delivered): Metered {
  const { images = 0 } = delivered.units ?? {};
  if (images === 0) return meterInput({ ...delivered, reported: undefined, isComplete: false });
  const { reported, inputTokens = 0, units } = delivered;
  if (reported !== undefined) {
    return { usage: reported, source: UsageSource.UPSTREAM, units, isCharged: true };
  }
  const outputTokens = images * imageTokensTypical;
  const usage = create(UsageSchema, { inputTokens, outputTokens });
  return { usage, source: UsageSource.ESTIMATED, units, isCharged: true };
}
