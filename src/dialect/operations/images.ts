/**
 * Requests for images and their replies in OpenAI's form: read if billing needs it, otherwise the
 * same bytes.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { asBuffer } from "../../core/bytes.ts";
import { invalid } from "../../core/validation.ts";
import {
  knownMembers,
  type ModelBody,
  pickMembers,
  readBoolean,
  readCount,
  readModel,
  readOutline,
  readText,
  textOf,
  withModel,
} from "../body-members.ts";
import { refuseUnknown } from "../features/billed-features.ts";
import type { RelayOptions } from "../dialect.ts";
import { refuseStored } from "../features/guard.ts";
import { ObjectScan, type Span } from "../../wire/json/scan.ts";
import { isRecord, UnreadableReplyError } from "../../wire/json/value.ts";
import { MediaEventsRelay, readMediaUsage } from "./media-events.ts";
import { classed, namesToCheck } from "../features/member-class.ts";
import { restoreReplyModel } from "../event-relay.ts";

/** Form of the images as a request or reply states it, of any type. */
export interface WrittenForm {
  readonly size?: unknown;
  readonly quality?: unknown;
}

/** A request for images. */
export interface ImagesBody extends ModelBody {
  /** The number of images, 1 to {@link imagesMax}. */
  readonly images: number;
  readonly stream: boolean;
  /** The requested size and quality. */
  readonly form: WrittenForm;
  /** All members. Parsed on demand: a relayed request needs none of them. */
  members(): JsonObject;
}

/** The most images of one request, as with OpenAI. */
export const imagesMax = 10;

/** The members of requests to generate, edit and vary images (R-TXT-13). */
export const imagesMembers = {
  ...classed(
    "free",
    `
    background complexity frame_duration_ms input_fidelity markup model moderation n
    output_compression partial_images prompt quality response_format safety_identifier size
    stream style user
    `,
  ),
  // Several frames are several images, and another model writes SVG. Usage does not count it.
  ...classed("refused", "frame_count output_format svg"),
  ...classed("stored object", "image images mask"),
} as const;

/** The members below them, all of `svg`. */
export const imagesNested = classed("refused", "effort model reasoning");

/**
 * Members by which other servers of this style make several images. The hold is computed from `n`
 * only.
 */
export const imagesMultipliers = classed(
  "refused",
  "batch_size num_images num_outputs number_of_images samples",
);

const known = knownMembers([
  ...["model", "prompt", "n", "stream", "size", "quality"],
  ...namesToCheck(imagesMembers),
]);

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
  const valueOf = (name: string): unknown => jsonValueOf(textOf(bytes, members, name));
  refuseMultipliers(outline.members.map(({ key }) => key));
  refuseUnpricedImages(valueOf);
  for (const name of ["image", "images", "mask"]) {
    refuseStoredImage(name, textOf(bytes, members, name));
  }
  return {
    ...withModel(bytes, members, model),
    images: readCount(bytes, members, "n", { max: imagesMax }) ?? 1,
    stream: readBoolean(bytes, members, "stream"),
    form: readForm(valueOf),
    members: () => JSON.parse(bytes.toString("utf8")) as JsonObject,
  };
}

function readForm(member: (name: "size" | "quality") => unknown): WrittenForm {
  return { size: member("size"), quality: member("quality") };
}

function jsonValueOf(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}

/** Refuses names of further counts. @throws GatewayError INVALID_REQUEST */
export function refuseMultipliers(names: readonly string[]): void {
  const other = names.find((name) => Object.hasOwn(imagesMultipliers, name));
  if (other === undefined) return;
  throw invalid(other, `"${other}" is not accepted: send the number of images as "n"`);
}

/**
 * Refuses animations and SVG, which cost more than an image.
 *
 * @param valueOf reads a member or field
 * @throws GatewayError INVALID_REQUEST
 */
export function refuseUnpricedImages(valueOf: (name: string) => unknown): void {
  const format = valueOf("output_format");
  if (typeof format === "string" && /^\s*(?:gif|svg)/i.test(format)) {
    throw refuseUnknown("output_format", `"${format.slice(0, 64)}"`);
  }
  for (const name of ["frame_count", "svg"]) {
    if (valueOf(name) != null) throw refuseUnknown(name, `"${name}"`);
  }
}

/** Refuses ids of files. Parses only JSON that may contain one: images are large. */
function refuseStoredImage(name: string, json: string | undefined): void {
  if (json === undefined || !/file_id|\\u00/i.test(json)) return;
  const value: unknown = JSON.parse(json);
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const at = all.findIndex((each) => isRecord(each) && each["file_id"] != null);
  if (at < 0) return;
  const path = Array.isArray(value) ? `${name}[${at}]` : name;
  throw refuseStored(path, 'send the image itself as "image_url"');
}

/** A complete reply with images. */
export interface ImagesReply {
  readonly body: Buffer;
  /** The vendor's tokens; undefined if it reports none. */
  readonly usage: Usage | undefined;
  /** The number of images in the reply. */
  readonly images: number;
  /** Form of its images. */
  readonly form: WrittenForm;
}

/** An element of `data` that is an image: vendors also list the images that failed. */
function isImage(body: Buffer, { start, end }: Span): boolean {
  const element = new ObjectScan().scan(body, start, end);
  return element.stringBytes("url") > 0 || element.stringBytes("b64_json") > 0;
}

/**
 * Counts the images of a complete reply and reads its usage; a model name in it becomes the public
 * one. Images that failed do not count.
 *
 * @throws UnreadableReplyError if the reply has no image: nothing is charged, and another route may
 * serve the call
 */
export function relayImages(body: Buffer, options: RelayOptions): ImagesReply {
  const scan = new ObjectScan().scan(body, 0, body.length);
  const images = scan.elements("data").filter((each) => isImage(body, each)).length;
  if (images === 0) throw new UnreadableReplyError("a reply without an image");
  return {
    body: restoreReplyModel(body, scan, options),
    usage: readMediaUsage(scan.value("usage")),
    images,
    form: readForm((name) => scan.value(name)),
  };
}

/** Relays streamed images: any number of partial ones, and a `completed` event for each. */
export class ImagesStreamRelay extends MediaEventsRelay {
  /** The images that are complete. */
  images = 0;
  /** Form according to the last image. */
  form: WrittenForm = {};
  readonly #wanted: number;

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

  protected onEvent(type: string, event: ObjectScan): void {
    this.restoreModel(event);
    if (!type.endsWith(".completed")) return;
    this.images += 1;
    this.form = readForm((name) => event.value(name));
    this.usage = added(this.usage, readMediaUsage(event.value("usage")));
    if (this.images >= this.#wanted) this.finished = this.done = true;
  }
}

/**
 * The usage of several images: each reports its own output, and the input that all of them share.
 */
function added(before: Usage | undefined, more: Usage | undefined): Usage | undefined {
  if (before === undefined || more === undefined) return before ?? more;
  const first = before.inputTokens >= more.inputTokens ? before : more;
  return { ...first, outputTokens: before.outputTokens + more.outputTokens };
}
