/**
 * JSON Schemas of canonical task parameters. An adapter accepts the parameters that it passes on;
 * all others are refused by name, so that none is silently ignored.
 */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig } from "../config/config.ts";
import { bytesPerToken } from "../core/limits.ts";
import { mediaType } from "../core/media-type.ts";
import { codePoints } from "../dialect/operations/audio.ts";
import type { TaskTokens, TaskUnits, VendorTasks, UnitModel } from "./task.ts";

/** Schemas of a parameter object's members, by canonical name. */
export type Params = Readonly<Record<string, JsonObject>>;

/** Further properties of a parameter object. */
interface ParamsRules {
  /** Required members. */
  readonly required?: readonly string[];
  /** Members of which exactly one is required. */
  readonly oneOf?: readonly string[];
  /** Members that require other members. */
  readonly dependentRequired?: Readonly<Record<string, string[]>>;
  /** Valid parameters, shown as an example. */
  readonly example?: JsonObject;
}

/** A closed object with these members. */
export function paramsObject(title: string, members: Params, rules: ParamsRules): JsonObject {
  const { required = [], oneOf = [], dependentRequired, example } = rules;
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title,
    type: "object",
    properties: members,
    additionalProperties: false,
    ...(required.length > 0 && { required: [...required] }),
    ...(oneOf.length > 0 && { oneOf: oneOf.map(requires) }),
    ...(dependentRequired && { dependentRequired }),
    ...(example && { examples: [example] }),
  };
}

/** An object with this member. Strict validators require declared members. */
function requires(name: string): JsonObject {
  return { type: "object", properties: { [name]: true }, required: [name] };
}

/** The prompt. */
export function promptParam(maxLength: number): JsonObject {
  return { type: "string", description: "What to generate, in words", minLength: 1, maxLength };
}

/** The negative prompt. */
export function negativePromptParam(maxLength: number): JsonObject {
  return { type: "string", description: "What not to generate", minLength: 1, maxLength };
}

/** An integer within a range. */
export function integerParam(
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

/** One of a list of words. */
export function enumParam(
  description: string,
  words: readonly string[],
  otherwise?: string,
): JsonObject {
  const isGiven = otherwise !== undefined;
  return { type: "string", description, enum: [...words], ...(isGiven && { default: otherwise }) };
}

/** A string in the vendor's own terms. */
export function vendorTextParam(description: string, maxLength: number): JsonObject {
  return { type: "string", description, minLength: 1, maxLength };
}

/** Width and height in pixels, of any value. */
export const sizeParam: JsonObject = {
  type: "string",
  description: "Width and height in pixels, such as 1024x1024",
  pattern: "^(?:auto|[1-9]\\d{1,4}[x*×][1-9]\\d{1,4})$",
};

/** The ratio of width to height. */
export const aspectRatioParam: JsonObject = {
  type: "string",
  description: "Width to height, such as 16:9",
  pattern: "^[1-9]\\d{0,2}:[1-9]\\d{0,2}$",
};

/** Makes results repeatable; the range that every vendor accepts. */
export const seedParam = integerParam("Makes results repeatable, where the model can", {
  least: 0,
  most: 2 ** 31 - 1,
});

/** A file given by URL, for vendors that fetch it themselves. */
export function fileParam(description: string): JsonObject {
  return { type: "string", format: "uri", description: `${description}: https:// or data:` };
}

/** An image within the parameters, for vendors that do not fetch URLs. */
export function imageParam(description: string): JsonObject {
  return {
    type: "string",
    format: "uri",
    pattern: "^data:image/(?:png|jpe?g|webp);base64,",
    description: `${description}: a data: URL of a PNG, JPEG or WebP image`,
  };
}

/**
 * Vendor parameters that are passed on unchanged.
 *
 * @param closed names that are refused: those set by other parameters, and those that change the
 * price, which is computed from the canonical parameters
 */
export function extraParam(closed: Iterable<string>): JsonObject {
  return {
    type: "object",
    description: "Further parameters by the vendor's names, passed on unchanged",
    propertyNames: { maxLength: 64, not: { enum: [...new Set(closed)] } },
    maxProperties: 64,
  };
}

/** The vendor's names of parameters. */
export type Mapping = ReadonlyMap<string, string>;

/** Converts parameters to the vendor's names, and adds `extra`. */
export function mapParams(params: JsonObject, mapping: Mapping): JsonObject {
  const sent: JsonObject = { ...objectParam(params, "extra") };
  for (const [name, vendorName] of mapping) {
    const value = params[name];
    if (value !== undefined) sent[vendorName] = value;
  }
  return sent;
}

/** An object parameter; empty if it is absent. */
function objectParam(params: JsonObject, name: string): JsonObject {
  const value = params[name];
  return isObject(value) ? value : {};
}

/** A string parameter. */
export function stringParam(params: JsonObject, name: string): string | undefined {
  const value = params[name];
  return typeof value === "string" ? value : undefined;
}

/** A number parameter, or its default. */
export function numberParam(params: JsonObject, name: string, otherwise: number): number {
  const value = params[name];
  return typeof value === "number" ? value : otherwise;
}

/** A list-of-strings parameter. */
export function stringsParam(params: JsonObject, name: string): readonly string[] {
  const value = params[name];
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** The media type and base64 content of a `data:` URL. */
export function parseDataUrl(url: string): { readonly mimeType: string; readonly data: string } {
  const comma = url.indexOf(",");
  return { mimeType: mediaType(url.slice("data:".length, comma)), data: url.slice(comma + 1) };
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The rules of a model whose default lengths are unknown: the length is required if a second has a
 * price; but not of a text to speak, which decides it.
 *
 * @param required the members that are required in any case
 */
export function lengthRules(
  required: readonly string[],
  { type, prices }: Pick<ModelConfig, "type" | "prices">,
): ParamsRules {
  const isTimed =
    type !== ModelType.IMAGE && prices.some(({ price }) => price.second !== undefined);
  if (type === ModelType.AUDIO) {
    const dependent = isTimed && { dependentRequired: { prompt: ["duration"] } };
    return { required, ...dependent, example: { text: "Good morning." } };
  }
  const example = { prompt: "A lighthouse" };
  if (!isTimed) return { required, example };
  return { required: [...required, "duration"], example: { ...example, duration: 5 } };
}

type Tasks = Pick<VendorTasks, "units" | "assumedSeconds" | "secondsMax">;

/** The units charged if the produced units are not stated. */
export function requestedUnits(
  tasks: Pick<Tasks, "units">,
  params: JsonObject,
  model: UnitModel & Pick<ModelConfig, "minSeconds">,
): TaskUnits {
  return atLeast(spokenUnits(tasks, params, model), model.minSeconds ?? 0);
}

/**
 * The units that the hold covers. A model may ignore the requested length, so its assumed length is
 * included.
 */
export function maxUnits(tasks: Tasks, params: JsonObject, model: ModelConfig): TaskUnits {
  const { assumedSeconds = 0 } = tasks;
  const secondsMax = tasks.secondsMax?.(params, model) ?? 0;
  const least = Math.max(model.minSeconds ?? assumedSeconds, secondsMax);
  return atLeast(spokenUnits(tasks, params, model), least);
}

function spokenUnits(tasks: Pick<Tasks, "units">, params: JsonObject, model: UnitModel): TaskUnits {
  const text = stringParam(params, "text") ?? stringParam(params, "prompt") ?? "";
  return withCharacters(tasks.units(params, model), model, () => [text]);
}

/**
 * Adds the characters (Unicode code points) of the texts to speak, for models of audio. Existing
 * counts stay: the units of a native request are counted once, on arrival.
 */
export function withCharacters<Units extends { readonly characters?: number | undefined }>(
  units: Units,
  { type }: Pick<ModelConfig, "type">,
  texts: () => readonly string[],
): Units {
  if (type !== ModelType.AUDIO || units.characters !== undefined) return units;
  let characters = 0;
  for (const text of texts()) characters += codePoints(text);
  return { ...units, characters };
}

/** The tokens of a text whose vendor reports none. */
export function estimatedTokens(input: string, output: string): TaskTokens {
  const tokens = (text: string): number => Math.ceil(Buffer.byteLength(text) / bytesPerToken);
  return { inputTokens: tokens(input), outputTokens: tokens(output), isEstimated: true };
}

/** Raises seconds to a minimum, for units that have seconds. */
export function atLeast(units: TaskUnits, least: number): TaskUnits {
  const { seconds } = units;
  return seconds === undefined ? units : { ...units, seconds: Math.max(seconds, least) };
}

/**
 * Minimum charge, for a video or audio from a native request whose real length is unknown: the
 * request may state any length.
 */
export const minChargedSeconds = 1;

/** The longest that a text takes to speak: digits and abbreviations, at two characters a second. */
export function speechSecondsMax(characters: number, speed: number): number {
  return 2 + Math.ceil(characters / 2 / speed);
}

/** The time that a text usually takes to speak, in seconds: about 12 characters a second. */
export function speechSecondsTypical(characters: number, speed: number): number {
  return Math.max(1, Math.ceil(characters / 12 / speed));
}

/** Returns the seconds that a text of so many characters takes to speak at a speed. */
type SpeechSeconds = (characters: number, speed: number) => number;

/**
 * The seconds of a video or audio: as requested; else, of a text to speak, what it takes. 0: not
 * known.
 */
export function requestedSeconds(
  params: JsonObject,
  type: ModelType,
  speechSeconds: SpeechSeconds = speechSecondsTypical,
): number {
  const seconds = numberParam(params, "duration", 0);
  if (seconds > 0 || type !== ModelType.AUDIO) return seconds;
  const characters = codePoints(stringParam(params, "text") ?? "");
  return characters === 0 ? 0 : speechSeconds(characters, numberParam(params, "speed", 1));
}

/** Implements {@link VendorTasks.secondsMax}. */
export function requestedSecondsMax(params: JsonObject, { type }: ModelConfig): number {
  return requestedSeconds(params, type, speechSecondsMax);
}
