/**
 * What vendors' tasks take, as JSON Schemas of the canonical parameters. An adapter takes of them what it passes
 * on; everything else is refused by name, so that no wish is silently without effect.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ModelConfig } from "../config/config.ts";
import type { TaskUnits, VendorTasks } from "./task.ts";

/** The schemas of a parameter object's members, by canonical name. */
export type Params = Readonly<Record<string, JsonObject>>;

/** What a parameter object is beside its members. */
interface ParamsRules {
  /** Those that must be there. */
  readonly required?: readonly string[];
  /** Of these exactly one must be there. */
  readonly oneOf?: readonly string[];
  /** Parameters that are accepted, to be shown. */
  readonly example?: JsonObject;
}

/** A closed object of these members. */
export function paramsObject(title: string, members: Params, rules: ParamsRules): JsonObject {
  const { required = [], oneOf = [], example } = rules;
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    type: "object",
    properties: members,
    additionalProperties: false,
    ...(required.length > 0 && { required: [...required] }),
    ...(oneOf.length > 0 && { oneOf: oneOf.map(requires) }),
    ...(example && { examples: [example] }),
  };
}

/** An object that has this member. Strict validators want a member named where it is required. */
function requires(name: string): JsonObject {
  return { type: "object", properties: { [name]: true }, required: [name] };
}

/** What to make. */
export function promptParam(maxLength: number): JsonObject {
  return { type: "string", description: "What to make, in words", minLength: 1, maxLength };
}

/** What not to make. */
export function negativePromptParam(maxLength: number): JsonObject {
  return { type: "string", description: "What not to make", minLength: 1, maxLength };
}

/** A whole number of a range. */
export function wholeParam(
  description: string,
  range: { readonly least: number; readonly most: number; readonly otherwise?: number },
): JsonObject {
  const { least, most, otherwise } = range;
  const isGiven = otherwise !== undefined;
  const type = "integer";
  return {
    type,
    description,
    minimum: least,
    maximum: most,
    ...(isGiven && { default: otherwise }),
  };
}

/** One of some words. */
export function wordParam(
  description: string,
  words: readonly string[],
  otherwise?: string,
): JsonObject {
  const isGiven = otherwise !== undefined;
  return { type: "string", description, enum: [...words], ...(isGiven && { default: otherwise }) };
}

/** A text of the vendor's own. */
export function ownParam(description: string, maxLength: number): JsonObject {
  return { type: "string", description, minLength: 1, maxLength };
}

/** Width and height in pixels, of any value. */
export const sizeParam: JsonObject = {
  type: "string",
  description: "Width and height in pixels, such as 1024x1024",
  pattern: "^(?:auto|[1-9]\\d{1,4}[x*×][1-9]\\d{1,4})$",
};

/** Width to height. */
export const aspectRatioParam: JsonObject = {
  type: "string",
  description: "Width to height, such as 16:9",
  pattern: "^[1-9]\\d{0,2}:[1-9]\\d{0,2}$",
};

/** Makes results repeatable: what every vendor takes of it. */
export const seedParam = wholeParam("Makes results repeatable, where the model can", {
  least: 0,
  most: 2 ** 31 - 1,
});

/** A file that the customer names, for vendors that fetch it themselves. */
export function fileParam(description: string): JsonObject {
  return { type: "string", format: "uri", description: `${description}: https:// or data:` };
}

/** A picture that comes with the parameters, for vendors that fetch none. */
export function pictureParam(description: string): JsonObject {
  return {
    type: "string",
    format: "uri",
    pattern: "^data:image/(?:png|jpeg|webp);base64,",
    description: `${description}: a data: address of a PNG, JPEG or WebP picture`,
  };
}

/**
 * What is passed on as it is.
 *
 * @param closed names that it may not have: those that something else sets, and those that change what a task
 *   costs, which is computed from the canonical parameters
 */
export function extraParam(closed: Iterable<string>): JsonObject {
  return {
    type: "object",
    description: "Further parameters in the vendor's own words, passed on as they are",
    propertyNames: { maxLength: 64, not: { enum: [...new Set(closed)] } },
    maxProperties: 64,
  };
}

/** Parameters by what the vendor calls them. */
export type Mapping = ReadonlyMap<string, string>;

/** What a vendor is sent: the parameters that the mapping knows by the vendor's names, and `extra`. */
export function mapped(params: JsonObject, mapping: Mapping): JsonObject {
  const sent: JsonObject = { ...objectParam(params, "extra") };
  for (const [name, vendorName] of mapping) {
    const value = params[name];
    if (value !== undefined) sent[vendorName] = value;
  }
  return sent;
}

/** A parameter that is an object; empty where it is none. */
function objectParam(params: JsonObject, name: string): JsonObject {
  const value = params[name];
  return isObject(value) ? value : {};
}

/** A parameter that is a text. */
export function stringParam(params: JsonObject, name: string): string | undefined {
  const value = params[name];
  return typeof value === "string" ? value : undefined;
}

/** A parameter that is a number, or what it is otherwise. */
export function numberParam(params: JsonObject, name: string, otherwise: number): number {
  const value = params[name];
  return typeof value === "number" ? value : otherwise;
}

/** A parameter that is a list of texts. */
export function stringsParam(params: JsonObject, name: string): readonly string[] {
  const value = params[name];
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** The media type and the bytes, in base64, of a `data:` address. */
export function dataOf(url: string): { readonly mimeType: string; readonly data: string } {
  const comma = url.indexOf(",");
  const [mimeType = ""] = url.slice("data:".length, comma).split(";");
  return { mimeType, data: url.slice(comma + 1) };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/* How long what is made is taken for: a model need not heed what is said of its length. Pure. */

type Tasks = Pick<VendorTasks, "units" | "secondsUsual">;

/** What a task is charged by where nobody tells what was made. */
export function askedUnits(tasks: Tasks, params: JsonObject, model: ModelConfig): TaskUnits {
  return atLeast(tasks.units(params, model), model.minSeconds ?? 0);
}

/** What money is held for. */
export function mostUnits(tasks: Tasks, params: JsonObject, model: ModelConfig): TaskUnits {
  const { secondsUsual = 0 } = tasks;
  return atLeast(tasks.units(params, model), model.minSeconds ?? secondsUsual);
}

/** Units of at least so many seconds, where they are of seconds. */
export function atLeast(units: TaskUnits, least: number): TaskUnits {
  const { seconds } = units;
  return seconds === undefined ? units : { ...units, seconds: Math.max(seconds, least) };
}

/** What a film or a sound is charged for at the least, in seconds, that was asked for in a vendor's own form and of
 * which nobody tells how long it is: a length there may be any number. */
export const secondsLeast = 1;
