/** Requests for images and their replies in OpenAI's form: read where billing needs it, otherwise the same bytes. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Usage } from "../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer } from "../core/bytes.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { invalid } from "../core/validation.ts";
import {
  knownMembers,
  type ModelBody,
  pickMembers,
  readBoolean,
  readCount,
  readModel,
  readOutline,
  readText,
  withModel,
} from "./body-members.ts";
import { errorBody } from "./codec.ts";
import type { RelayOptions } from "./dialect.ts";
import { ObjectScan } from "./json/object-scan.ts";
import { isRecord, recordAt } from "./json/value.ts";
import { EventRelay, restoreReplyModel } from "./sse/event-relay.ts";
import { reportedUsage } from "./usage.ts";

/** A request for images. */
export interface ImagesBody extends ModelBody {
  /** The number of images, 1 to {@link imagesMax}. */
  readonly images: number;
  readonly stream: boolean;
  /** All members. Parsed on demand: a relayed request needs none of them. */
  members(): JsonObject;
}

/** The most images of one request, as with OpenAI. */
export const imagesMax = 10;

/** Members by which other servers of this style make several images. The hold is computed from `n` only. */
const multipliers = new Set([
  "batch_size",
  "num_images",
  "num_outputs",
  "number_of_images",
  "samples",
]);

const known = knownMembers(["model", "prompt", "n", "stream"]);

/**
 * Reads a request for images.
 *
 * @throws GatewayError INVALID_REQUEST, naming the member at fault
 */
export function readImagesBody(body: Uint8Array): ImagesBody {
  const bytes = asBuffer(body);
  const outline = readOutline(bytes);
  const members = pickMembers(outline, known);
  const model = readModel(bytes, members, "model");
  readText(bytes, members, "prompt");
  refuseMultipliers(outline.members.map(({ key }) => key));
  return {
    ...withModel(bytes, members, model),
    images: readCount(bytes, members, "n", { max: imagesMax }) ?? 1,
    stream: readBoolean(bytes, members, "stream"),
    members: () => JSON.parse(bytes.toString("utf8")) as JsonObject,
  };
}

/** Refuses names of further counts. @throws GatewayError INVALID_REQUEST */
export function refuseMultipliers(names: readonly string[]): void {
  const other = names.find((name) => multipliers.has(name));
  if (other === undefined) return;
  throw invalid(other, `"${other}" is not taken: send the number of images as "n"`);
}

/** A complete reply with images. */
export interface ImagesReply {
  readonly body: Buffer;
  /** The vendor's tokens; `undefined`: it reports none. */
  readonly usage: Usage | undefined;
  /** The number of images in the reply. */
  readonly images: number;
}

/** Counts the images of a complete reply and reads its usage; a model name in it becomes the public one. */
export function relayImages(body: Buffer, options: RelayOptions): ImagesReply {
  const scan = new ObjectScan().scan(body, 0, body.length);
  return {
    body: restoreReplyModel(body, scan, options),
    usage: readImagesUsage(scan.value("usage")),
    images: scan.elements("data").length,
  };
}

const usedUp = "Insufficient balance: the amount that was set aside for this call is used up";

/** Relays streamed images: any number of partial ones, and a `completed` event for each. */
export class ImagesStreamRelay extends EventRelay {
  /** The images that are complete. */
  images = 0;
  readonly #wanted: number;
  readonly #event = new ObjectScan();

  /** @param options with the number of images as `choices` */
  constructor(options: RelayOptions) {
    super(options);
    this.#wanted = options.choices;
  }

  override end(): Buffer {
    const last = super.end();
    // A vendor may make fewer images than requested. Its clean end is the only mark of that.
    if (this.images > 0 && !this.failed) this.finished = this.done = true;
    return last;
  }

  errorEvent(error: GatewayError): Buffer {
    const event = { type: "error", ...errorBody(error) };
    return Buffer.from(`event: error\ndata: ${JSON.stringify(event)}\n\n`);
  }

  /** An image without its last bytes is none: what ends early has failed. */
  stop(): Buffer {
    return this.errorEvent(new GatewayError(ErrorCode.INSUFFICIENT_BALANCE, usedUp));
  }

  protected onData(bytes: Buffer, start: number, end: number): void {
    const event = this.#event.scan(bytes, start, end);
    const type = event.string("type") || this.eventName();
    this.restoreModel(event);
    if (type === "error" || Boolean(event.value("error"))) this.failed = true;
    if (!type.endsWith(".completed")) return;
    this.images += 1;
    this.usage = added(this.usage, readImagesUsage(event.value("usage")));
    if (this.images >= this.#wanted) this.finished = this.done = true;
  }
}

/** The usage of several images: each reports its own output, and the input that all of them share. */
function added(before: Usage | undefined, more: Usage | undefined): Usage | undefined {
  if (before === undefined || more === undefined) return before ?? more;
  const first = before.inputTokens >= more.inputTokens ? before : more;
  return { ...first, outputTokens: before.outputTokens + more.outputTokens };
}

/** The usage of images; `undefined` where the figures are unusable. */
export function readImagesUsage(usage: unknown): Usage | undefined {
  if (!isRecord(usage)) return undefined;
  const input = recordAt(usage, "input_tokens_details");
  return reportedUsage({
    input: usage["input_tokens"],
    cached: input?.["cached_tokens"],
    written: undefined,
    output: usage["output_tokens"],
    reasoning: undefined,
  });
}
