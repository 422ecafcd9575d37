/** Meters replies of fal: from a header, or from the JSON of the result. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { parseRecord } from "../../dialect/json/value.ts";
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
  readonly #request: FalRequest;

  constructor(request: FalRequest) {
    this.#request = request;
  }

  read(bytes: Buffer, start: number, end: number): void {
    const result = parseRecord(bytes.toString("utf8", start, end)) as JsonObject | undefined;
    if (result === undefined) return;
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
 * The billable units of a result. fal states its own in the header `x-fal-billable-units`, in the unit of the
 * model's price: images, their megapixels, or seconds of video or audio. Absent seconds mean that the length is
 * unknown.
 */
export function falUnits(result: JsonObject, { type, requested, headers }: FalRequest): TaskUnits {
  const billed = falBilledUnits(headers);
  if (type === ModelType.IMAGE) {
    return { images: billed === undefined ? imagesIn(result, requested) : Math.ceil(billed) };
  }
  const seconds = billed ?? secondsIn(result);
  return seconds === undefined ? {} : { seconds };
}

/** The units that fal bills; `undefined` where it does not say. */
export function falBilledUnits(headers: Readonly<Record<string, string>>): number | undefined {
  const text = headers["x-fal-billable-units"] ?? "";
  return /^\d{1,9}(?:\.\d{1,12})?$/.test(text) ? Number(text) : undefined;
}

/** A result in another form counts as requested. */
function imagesIn({ images }: JsonObject, requested: TaskUnits): number {
  return Array.isArray(images) ? images.length : (requested.images ?? 1);
}

/** The length of a result's file in seconds; `undefined` where it is not stated. */
export function secondsIn(result: JsonObject): number | undefined {
  for (const file of [result["video"], result["audio"], result]) {
    if (typeof file !== "object" || file === null || Array.isArray(file)) continue;
    const { duration } = file;
    if (typeof duration === "number" && duration > 0) return duration;
  }
  return undefined;
}
