/** Converts a request for images in OpenAI's form to the task parameters of its model. Pure. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { GatewayError } from "../../core/errors.ts";
import { invalid } from "../../core/validation.ts";
import type { ImageTaskModel } from "./image-tasks.ts";

/** Task parameters from a request. */
export interface ImageParams {
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

/**
 * Converts the members of a request. Members of the model's own parameters (`seed`, `negative_prompt`) are taken, too.
 * `auto` leaves the choice to the vendor.
 *
 * @throws GatewayError INVALID_REQUEST, in the request's own words
 */
export function imageParams(members: JsonObject, model: ImageTaskModel): ImageParams {
  const known = (model.schema["properties"] ?? {}) as JsonObject;
  const params: JsonObject = {};
  const dropped: string[] = [];
  for (const [name, value] of Object.entries(members)) {
    if (ownMembers.has(name) || value === null || value === "auto") continue;
    const canonical = camelCase(name);
    if (canonical in known) params[canonical] = value;
    else if (name === "size" && "aspectRatio" in known) params["aspectRatio"] = ratioOf(value);
    else if (name === "n") requireOne(value);
    else dropped.push(name);
  }
  return { params: readParams(params, model), dropped };
}

/** A model without the parameter makes one image. */
function requireOne(value: JsonValue): void {
  if (value === 1) return;
  throw invalid("n", '"n" must be 1: this model makes one image for each request');
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
function readParams(params: JsonObject, { field, read }: ImageTaskModel): JsonObject {
  try {
    return read(params);
  } catch (error) {
    if (!(error instanceof GatewayError) || error.param === undefined) throw error;
    const { code, cause } = error;
    const at = error.param.replace(`${field}.`, "");
    const param = at === "aspectRatio" ? "size" : snakeCase(at);
    const rule = error.message.replace(`${error.param}: `, "");
    const text = at === "aspectRatio" ? `its ratio of width to height ${rule}` : rule;
    throw new GatewayError(code, `"${param}": ${text}`, { param, cause });
  }
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase());
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
