/** Meters fal's tasks and native replies alike: from a header, or from the JSON of the result. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { Usage } from "../../../gen/uas/type/v1/usage_pb.ts";
import { countAt, type JsonRecord, parseRecord, recordAt } from "../../wire/json/value.ts";
import { reportedUsage } from "../../dialect/features/usage.ts";
import type { NativeMeter } from "../native.ts";
import type { TaskUnits } from "../task.ts";

/** The request that a result belongs to. */
export interface FalRequest {
  readonly type: ModelType;
  /** The requested units. */
  readonly requested: TaskUnits;
  /** The headers of the reply. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A stream repeats the same result in improving quality; the event with the most units counts. */
export class FalMeter implements NativeMeter {
  readonly usage = undefined;
  readonly textBytes = 0;
  readonly isDone = false;
  images = 0;
  seconds = 0;
  isFailed = false;
  readonly #request: FalRequest;

  constructor(request: FalRequest) {
    this.#request = request;
  }

  read(bytes: Buffer, start: number, end: number): void {
    const result = parseRecord(bytes.toString("utf8", start, end)) as JsonObject | undefined;
    if (result === undefined) return;
    const isError = isFalError(result);
    this.isFailed ||= isError;
    // It may bill a failure.
    if (isError && falBilledUnits(this.#request.headers) === undefined) return;
    const units = falUnits(result, this.#request);
    const { images = 0, seconds = this.#request.requested.seconds ?? 0 } = units;
    this.images = Math.max(this.images, images);
    this.seconds = Math.max(this.seconds, seconds);
  }

  /** The hold covers the whole stream, so it is never stopped for money. */
  stop(): string {
    return "{}";
  }
}

/**
 * Meters the reply of a TEXT model. Events repeat the text so far, or continue it; the last usage
 * counts.
 */
export class FalTextMeter implements NativeMeter {
  readonly images = 0;
  usage: Usage | undefined;
  isDone = false;
  isFailed = false;
  #text = "";
  /** The text that had come with {@link usage}. */
  #countedTextBytes = 0;

  get textBytes(): number {
    return Buffer.byteLength(this.#text);
  }

  get uncountedTextBytes(): number {
    return this.usage === undefined ? 0 : this.textBytes - this.#countedTextBytes;
  }

  read(bytes: Buffer, start: number, end: number): void {
    const reply = parseRecord(bytes.toString("utf8", start, end));
    if (reply === undefined) return;
    this.isFailed ||= isFalError(reply as JsonObject);
    const text = falText(reply as JsonObject);
    this.#text = text.startsWith(this.#text) ? text : this.#text + text;
    const usage = falUsage(reply);
    if (usage !== undefined) {
      this.usage = usage;
      this.#countedTextBytes = this.textBytes;
    }
    this.isDone ||= reply["partial"] === false;
  }

  addedTextBytes(bytes: Buffer, start: number, end: number): number {
    const text = falText((parseRecord(bytes.toString("utf8", start, end)) ?? {}) as JsonObject);
    return Buffer.byteLength(text) - (text.startsWith(this.#text) ? this.textBytes : 0);
  }

  stop(): string {
    return JSON.stringify({ output: this.#text, partial: false });
  }
}

/**
 * Whether a result, or an event, is an error: it has `error`, or `detail` and no output of the
 * model.
 */
function isFalError({ error, detail, ...others }: JsonObject): boolean {
  if (isSet(error)) return true;
  const hasResult = falText(others) !== "" || Object.values(others).some(isStructured);
  return isSet(detail) && !hasResult;
}

function isSet(value: JsonValue | undefined): boolean {
  return isStructured(value) ? Object.keys(value).length > 0 : Boolean(value);
}

function isStructured(value: JsonValue | undefined): value is JsonObject | JsonValue[] {
  return typeof value === "object" && value !== null;
}

/** The text of a result, or of an event. */
export function falText({ output, text, results }: JsonObject): string {
  return [output, text, results].find((each) => typeof each === "string") ?? "";
}

/** Returns the tokens that a result reports; undefined if there are none. */
export function falUsage(result: JsonRecord): Usage | undefined {
  const usage = recordAt(result, "usage") ?? {};
  const input = countAt(usage, "prompt_tokens");
  const output = countAt(usage, "completion_tokens");
  if (input === undefined || output === undefined) return undefined;
  const cached = countAt(recordAt(usage, "prompt_tokens_details") ?? {}, "cached_tokens") ?? 0;
  const details = recordAt(usage, "completion_tokens_details") ?? {};
  const reasoning = countAt(details, "reasoning_tokens") ?? 0;
  return reportedUsage({ input, cached, written: 0, output, reasoning });
}

/**
 * The billable units of a result. fal states its own in the header `x-fal-billable-units`, in the
 * unit of the model's price: images, their megapixels, or seconds of video or audio. Absent seconds
 * mean that the length is unknown.
 */
export function falUnits(result: JsonObject, { type, requested, headers }: FalRequest): TaskUnits {
  const billed = falBilledUnits(headers);
  if (type === ModelType.IMAGE) {
    return { images: billed === undefined ? imagesIn(result, requested) : Math.ceil(billed) };
  }
  const seconds = billed ?? secondsIn(result);
  return seconds === undefined ? {} : { seconds };
}

/** The units that fal bills; `undefined` if it does not say. */
export function falBilledUnits(headers: Readonly<Record<string, string>>): number | undefined {
  const text = headers["x-fal-billable-units"] ?? "";
  return /^\d{1,9}(?:\.\d{1,12})?$/.test(text) ? Number(text) : undefined;
}

/** A result in another form counts as requested. */
function imagesIn({ images }: JsonObject, requested: TaskUnits): number {
  return Array.isArray(images) ? images.length : (requested.images ?? 1);
}

/** The length of a result's file in seconds; `undefined` if it is not stated. */
export function secondsIn(result: JsonObject): number | undefined {
  for (const file of [result["video"], result["audio"], result]) {
    if (typeof file !== "object" || file === null || Array.isArray(file)) continue;
    const { duration } = file;
    if (typeof duration === "number" && duration > 0) return duration;
  }
  return undefined;
}
