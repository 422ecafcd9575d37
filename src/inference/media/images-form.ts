/** Reads forms with images: requests to edit or vary them. */
import { invalid } from "../../core/validation.ts";
import type { ImagesBody } from "../../dialect/images.ts";
import { imagesMax, refuseMultipliers } from "../../dialect/images.ts";
import type { Upload } from "./upload.ts";

/** A request for images as a form. */
export interface ImagesForm extends Pick<ImagesBody, "model" | "images" | "stream" | "form"> {
  /** The most input tokens: those of its texts and images. */
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
  return {
    model: requiredField(upload, "model"),
    images: countField(upload, "n"),
    stream: flagField(upload, "stream"),
    form: { size: upload.field("size"), quality: upload.field("quality") },
    inputTokensMax: fieldBytes + files.length * inputImageTokensMax,
  };
}

/** A text field. @throws GatewayError INVALID_REQUEST where it is missing or blank */
export function requiredField(upload: Upload, name: string): string {
  const value = upload.field(name)?.trim() ?? "";
  if (value !== "") return value;
  throw invalid(name, `"${name}" is missing: send a field of that name with a text`);
}

/** A flag; false where it is absent. @throws GatewayError INVALID_REQUEST */
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
