/**
 * Converts requests for images and speech in OpenAI's form to the task parameters of their model.
 * Pure.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { GatewayError } from "../../../core/errors.ts";
import { invalid } from "../../../core/validation.ts";
import type { MediaTaskModel } from "./media-tasks.ts";

/** Task parameters from a request. */
export interface TaskParams {
  /** Checked, in canonical names. */
  readonly params: JsonObject;
  /** Members that the model has no parameter for. */
  readonly dropped: readonly string[];
}

/** Members that the gateway itself handles, or that change no image. */
const ownMembers: ReadonlySet<string> = new Set([
  "model",
  "response_format",
  "stream",
  "partial_images",
  "user",
]);

/** Whether tasks of a model start from images. */
export function takesImages(model: MediaTaskModel | undefined): boolean {
  return "imageUrls" in knownParams(model);
}

function knownParams(model: MediaTaskModel | undefined): JsonObject {
  return (model?.schema["properties"] ?? {}) as JsonObject;
}

/**
 * Replaces the images of an edit, and its mask, by the parameters of tasks: `images: [{ image_url
 * }]`, or addresses as they are.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function withImageUrls({ image, images, mask, ...members }: JsonObject): JsonObject {
  const given = images ?? image;
  const list = Array.isArray(given) ? given : [given];
  if (given == null || list.length === 0) {
    throw invalid(
      "images",
      '"images" is missing: send a list such as [{"image_url": "https://…"}]',
    );
  }
  return {
    ...members,
    image_urls: list.map((each, index) => addressOf(each, `images[${index}]`)),
    ...(mask != null && { mask_url: addressOf(mask, "mask") }),
  };
}

function addressOf(value: JsonValue | undefined, path: string): string {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  const address = isObject ? value["image_url"] : value;
  if (typeof address === "string" && address !== "") return address;
  throw invalid(
    path,
    `"${path}" must be {"image_url": "…"} with an https or data: address: file ids are not supported by this model's vendor`,
  );
}

/** A field of a form, as the model's parameter of that name has it. */
export function formValue(name: string, value: string, model: MediaTaskModel): JsonValue {
  const { type } = (knownParams(model)[camelCase(name)] ?? {}) as JsonObject;
  const number = Number(value);
  const isNumber = type === "integer" || type === "number" || name === "n";
  if (isNumber && value.trim() !== "" && Number.isFinite(number)) return number;
  if (type === "boolean" && (value === "true" || value === "false")) return value === "true";
  return value;
}

/**
 * Converts the members of a request. Members of the model's own parameters (`seed`,
 * `negative_prompt`) are taken, too. `auto` leaves the choice to the vendor.
 *
 * @throws GatewayError INVALID_REQUEST, in the request's own words
 */
export function imageParams(members: JsonObject, model: MediaTaskModel): TaskParams {
  const known = knownParams(model);
  const params: JsonObject = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    if (ownMembers.has(name) || value === null || value === "auto") continue;
    const canonical = camelCase(name);
    if (canonical in known) params[canonical] = value;
    else if (name === "size" && "aspectRatio" in known) params["aspectRatio"] = ratioOf(value);
    else if (name === "n") requireOne(value);
    else if (name === "mask_url") throw noMask();
    else dropped.push(name);
  }
  return { params: readParams(params, model), dropped };
}

/** Members of requests for speech that the gateway itself handles. */
const ownSpeechMembers: ReadonlySet<string> = new Set(["model", "stream_format", "user"]);

/** Whether tasks of a model speak a text. */
export function takesText(model: MediaTaskModel | undefined): boolean {
  return "text" in knownParams(model);
}

/**
 * Converts the members of a request for speech. `input` is the text to speak. The model decides the
 * format of its files, so `response_format` is dropped unless the model has a parameter for it.
 *
 * @throws GatewayError INVALID_REQUEST, in the request's own words
 */
export function speechParams(members: JsonObject, model: MediaTaskModel): TaskParams {
  const known = knownParams(model);
  const params: JsonObject = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    if (ownSpeechMembers.has(name) || value === null) continue;
    const canonical = speechNames.get(name) ?? camelCase(name);
    // `text` and `prompt` would duplicate `input`.
    if (canonical in known && name !== "text" && name !== "prompt") params[canonical] = value;
    else dropped.push(name);
  }
  return { params: readParams(params, model), dropped };
}

/** The names of task parameters that requests for speech call otherwise. */
const speechNames: ReadonlyMap<string, string> = new Map([
  ["input", "text"],
  ["response_format", "format"],
]);

/** A model without the parameter makes one image. */
function requireOne(value: JsonValue): void {
  if (value === 1) return;
  throw invalid("n", '"n" must be 1: this model makes one image for each request');
}

/** Without its mask, an edit would change the whole image. */
function noMask(): GatewayError {
  return invalid("mask", '"mask" is not taken by this model: say in the prompt what to change');
}

/** `1536x1024` as `3:2`. */
function ratioOf(size: JsonValue): string {
  const [, width = "", height = ""] =
    /^(\d{2,5})x(\d{2,5})$/.exec(JSON.stringify(size).slice(1, -1)) ?? [];
  if (width === "") throw invalid("size", '"size" must be such as "1024x1024", or "auto"');
  const divisor = greatestDivisor(Number(width), Number(height));
  return `${Number(width) / divisor}:${Number(height) / divisor}`;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** Checks the parameters. Errors name the request's members. */
function readParams(params: JsonObject, { field, read }: MediaTaskModel): JsonObject {
  try {
    return read(params);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.param === undefined) throw error;
    const { code, cause } = error;
    const at = error.param.replace(`${field}.`, "");
    const param = ownNames.get(at.replace(/[.[].*/, "")) ?? snakeCase(at);
    const rule = error.message.replace(`${error.param}: `, "");
    const text = at === "aspectRatio" ? `its ratio of width to height ${rule}` : rule;
    throw new GatewayError(code, `"${param}": ${text}`, { param, cause });
  }
}

/** Parameters that requests call by another name. */
const ownNames: ReadonlyMap<string, string> = new Map([
  ["aspectRatio", "size"],
  ["imageUrls", "image"],
  ["maskUrl", "mask"],
  ["text", "input"],
  ["format", "response_format"],
]);

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
