/** Requests for images in OpenAI's form. */
import { create } from "@bufbuild/protobuf";
import { ModelType } from "../../../../gen/uas/inference/v1/model_pb.ts";
import { UsageSchema, UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import type { ImageForm } from "../../../config/config.ts";
import { imageWordOf } from "../../../config/price.ts";
import type { RelayOptions } from "../../../dialect/dialect.ts";
import {
  type ImagesBody,
  ImagesStreamRelay,
  readImagesBody,
  relayImages,
  type WrittenForm,
} from "../../../dialect/operations/images.ts";
import { type Delivered, type Metered, meterInput } from "../../pipeline/metering.ts";
import type { ReplyStream, RequestSummary, WholeReply } from "../../pipeline/adapter.ts";
import type { PlannedRoute } from "../../../routing/planned-route.ts";
import { readImagesForm, type ImagesForm } from "./images-form.ts";
import { type MediaInput, MediaRequest } from "./media-adapter.ts";

/** The most tokens of one image: twice OpenAI's largest. */
const imageTokensMax = 16_384;

/** The tokens of an image whose vendor reports none: OpenAI's medium quality at 1024x1024. */
const imageTokensTypical = 1_056;

/** A request for images that has been read. */
export class ImagesRequest extends MediaRequest {
  override readonly operation: "generateImages" | "editImages" | "varyImages";
  override readonly isReadToEnd = true;
  readonly text: RequestSummary;
  readonly body: ImagesBody | ImagesForm;
  protected readonly modelType = ModelType.IMAGE;
  protected override readonly isJob = true;

  /** @throws GatewayError INVALID_REQUEST */
  constructor(input: MediaInput, operation: ImagesRequest["operation"] = "generateImages") {
    super(input);
    const { request, upload } = input;
    this.operation = operation;
    const needsPrompt = operation !== "varyImages";
    this.body = upload ? readImagesForm(upload, needsPrompt) : readImagesBody(request.body);
    const { model, images, stream, form } = this.body;
    const bytes = "bytes" in this.body ? this.body.bytes.length : this.body.inputTokensMax;
    this.text = {
      model,
      stream,
      maxOutputTokens: imageTokensMax,
      choices: images,
      bytes,
      units: { images },
      imageForm: imageFormOf(form),
    };
  }

  whole(body: Buffer, planned: PlannedRoute): WholeReply<Buffer> {
    const { images, form, ...reply } = relayImages(body, this.#relayOptions(planned));
    return { ...reply, textBytes: 0, units: { images }, imageForm: imageFormOf(form) };
  }

  stream(planned: PlannedRoute): ReplyStream<Buffer> {
    return new StreamedImages(this.#relayOptions(planned));
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
  override get units(): { readonly images: number } {
    return { images: this.images };
  }

  get imageForm(): ImageForm {
    return imageFormOf(this.form);
  }
}

/** The form in the words of prices; members that say nothing are left out. */
function imageFormOf(written: WrittenForm): ImageForm {
  const size = imageWordOf(written.size);
  const quality = imageWordOf(written.quality);
  return { ...(size && { size }), ...(quality && { quality }) };
}

/**
 * Images are charged once they are there; their tokens are estimated if the vendor reports none.
 */
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
