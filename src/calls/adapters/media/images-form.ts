/** Reads forms with images: requests to edit or vary them. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { bodyBytesMax } from "../../../core/limits.ts";
import { ErrorCode, GatewayError } from "../../../core/errors.ts";
import { invalid } from "../../../core/validation.ts";
import type { ImagesBody } from "../../../dialect/operations/images.ts";
import {
  imagesMax,
  refuseMultipliers,
  refuseUnpricedImages,
} from "../../../dialect/operations/images.ts";
import type { Upload, UploadedFile } from "./upload.ts";

/** A request for images as a form. */
export interface ImagesForm extends Pick<ImagesBody, "model" | "images" | "stream" | "form"> {
  /** Maximum input tokens of its texts and images. */
  readonly inputTokensMax: number;
}

/** The most tokens of an image that is read: OpenAI's largest in high fidelity. */
const inputImageTokensMax = 8_192;

/** Reads a form. @throws GatewayError INVALID_REQUEST, naming the field at fault */
export function readImagesForm(upload: Upload, needsPrompt: boolean): ImagesForm {
  const { files, fieldBytes, fieldNames } = upload;
  if (needsPrompt) requiredField(upload, "prompt");
  const images = files.filter(({ name }) => name === "image" || name === "image[]");
  if (images.length === 0) throw invalid("image", '"image" is missing: send a file of that name');
  const empty = files.find(({ bytes }) => bytes === 0);
  if (empty !== undefined) throw invalid(empty.name, `"${empty.name}" is an empty file`);
  refuseMultipliers(fieldNames);
  refuseUnpricedImages((name) => upload.field(name));
  return {
    model: requiredField(upload, "model"),
    images: countField(upload, "n"),
    stream: flagField(upload, "stream"),
    form: { size: upload.field("size"), quality: upload.field("quality") },
    inputTokensMax: fieldBytes + files.length * inputImageTokensMax,
  };
}

/**
 * The most bytes of all images of a request that becomes a task: as many as a JSON request can have
 * in base64.
 */
const taskBytesMax = Math.floor((bodyBytesMax * 3) / 4);

/**
 * The members of a form whose model makes images as tasks: its fields, and its files as `data:`
 * addresses.
 *
 * @param valueOf the value of a field as JSON
 * @throws GatewayError INVALID_REQUEST, REQUEST_TOO_LARGE
 */
export async function readImagesMembers(
  upload: Upload,
  valueOf: (name: string, value: string) => JsonValue,
): Promise<JsonObject> {
  const members: JsonObject = {};
  for (const name of upload.fieldNames) {
    members[name.replace(/\[\]$/, "")] = valueOf(name, upload.field(name) ?? "");
  }
  const files = upload.files.filter(({ name }) => /^(?:image(?:\[\])?|mask)$/.test(name));
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  if (bytes > taskBytesMax) throw imagesTooLarge();
  const images: string[] = [];
  for (const file of files) {
    const url = await dataUrlOf(file);
    if (file.name === "mask") members["mask_url"] = url;
    else images.push(url);
  }
  return { ...members, image_urls: images };
}

function imagesTooLarge(): GatewayError {
  return new GatewayError(
    ErrorCode.REQUEST_TOO_LARGE,
    `This model accepts images of at most ${taskBytesMax} bytes in total; send smaller ones`,
    { param: "image" },
  );
}

/** The first bytes of the images that vendors read. */
const signatures: readonly (readonly [type: string, pattern: RegExp])[] = [
  ["image/png", /^\x89PNG/],
  ["image/jpeg", /^\xff\xd8\xff/],
  ["image/webp", /^RIFF[^]{4}WEBP/],
];

/** Converts a file to a data URL. Clients often send no type, so it is detected from the bytes. */
async function dataUrlOf({ name, bytes, readAt }: UploadedFile): Promise<string> {
  const content = await readAt(0, bytes);
  const head = content.toString("latin1", 0, 12);
  const [type] = signatures.find(([, pattern]) => pattern.test(head)) ?? [];
  if (type !== undefined) return `data:${type};base64,${content.toString("base64")}`;
  throw invalid(name, `"${name}" must be a PNG, JPEG or WebP image`);
}

/** A text field. @throws GatewayError INVALID_REQUEST if it is missing or blank */
export function requiredField(upload: Upload, name: string): string {
  const value = upload.field(name)?.trim() ?? "";
  if (value !== "") return value;
  throw invalid(name, `"${name}" is missing: send a field of that name with a text`);
}

/** A flag; false if it is absent. @throws GatewayError INVALID_REQUEST */
export function flagField(upload: Upload, name: string): boolean {
  const value = upload.field(name) ?? "false";
  if (value === "true" || value === "false") return value === "true";
  throw invalid(name, `"${name}" must be true or false`);
}

function countField(upload: Upload, name: string): number {
  const value = upload.field(name) ?? "1";
  const count = /^\d{1,2}$/.test(value) ? Number(value) : 0;
  if (count >= 1 && count <= imagesMax) return count;
  throw invalid(name, `"${name}" must be a whole number from 1 to ${imagesMax}`);
}
