/** What a reply of fal costs: told by a header, else read from the JSON of the result. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { parseRecord } from "../../dialect/json/value.ts";
import type { NativeMeter } from "../native.ts";
import type { TaskUnits } from "../task.ts";

/** What is known of a request whose result is read. */
export interface FalRequest {
  readonly type: ModelType;
  /** What was asked for. */
  readonly asked: TaskUnits;
  /** The headers of the reply. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A stream shows the same result again and again, a little better each time: the most of one event counts. */
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
    const told = falUnits(result, this.#request);
    const { images = 0, seconds = this.#request.asked.seconds ?? 0 } = told;
    this.images = Math.max(this.images, images);
    this.seconds = Math.max(this.seconds, seconds);
  }

  /** A stream is held for as a whole, so it is never stopped for its money. */
  stop(): string {
    return "{}";
  }
}

/**
 * What a result is charged by. What fal itself bills is the header `x-fal-billable-units`, in the unit of the
 * model's price: pictures or their megapixels, seconds of film or sound. No seconds: it does not say.
 */
export function falUnits(result: JsonObject, { type, asked, headers }: FalRequest): TaskUnits {
  const billed = falBilled(headers);
  if (type === ModelType.IMAGE) {
    return { images: billed === undefined ? imagesIn(result, asked) : Math.ceil(billed) };
  }
  const seconds = billed ?? secondsIn(result);
  return seconds === undefined ? {} : { seconds };
}

/** How much of the unit fal says that it bills; `undefined`: it does not say. */
export function falBilled(headers: Readonly<Record<string, string>>): number | undefined {
  const text = headers["x-fal-billable-units"] ?? "";
  return /^\d{1,9}(?:\.\d{1,12})?$/.test(text) ? Number(text) : undefined;
}

/** A result of another form is what was asked for. */
function imagesIn({ images }: JsonObject, asked: TaskUnits): number {
  return Array.isArray(images) ? images.length : (asked.images ?? 1);
}

/** How long the file of a result is; `undefined`: it does not say. */
export function secondsIn(result: JsonObject): number | undefined {
  for (const file of [result["video"], result["audio"], result]) {
    if (typeof file !== "object" || file === null || Array.isArray(file)) continue;
    const { duration } = file;
    if (typeof duration === "number" && duration > 0) return duration;
  }
  return undefined;
}
