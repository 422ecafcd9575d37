/** How jobs in fal's queue are told of. What one came to stands at another address than how it stands. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import { isRecord } from "../dialect/json.ts";
import { falDetail, isFalContent } from "./fal-fault.ts";
import { falBilled, falUnits } from "./fal-meter.ts";
import type { NativeResult } from "./native.ts";
import { contentTypes, faultText, jsonOf } from "./task-http.ts";
import { type TaskNews, type VendorFile, VendorTrouble } from "./task.ts";

/** What fal says where it was asked to stop a job, and will if it can. */
const cancelling = "CANCELLATION_REQUESTED";

/** `owner/app`, to which a job belongs: what else there is in its model's name is not part of its addresses. */
export function falApp(model: string): string {
  const parts = model.split("/");
  const isNamed = parts[0] === "workflows" || parts[0] === "comfy";
  return parts.slice(0, isNamed ? 3 : 2).join("/");
}

/** The id of a job in an answer; `undefined`: it tells of none. */
export function falJobId({ request_id: id }: JsonObject): string | undefined {
  return typeof id === "string" && /^[\w-]{1,200}$/.test(id) ? id : undefined;
}

/** Its word of how a job stands. That it was to be stopped is not said again, and tells what its end means. */
export function falStatus({ status }: JsonObject, before: string): string {
  return before === cancelling || typeof status !== "string" ? before : status;
}

/** Whether a job has ended: how is told by its result. @throws VendorTrouble where it does not say */
export function falNews({ status }: JsonObject): TaskNews {
  if (status === "IN_QUEUE" || status === "IN_PROGRESS") return { status: "running" };
  if (status === "COMPLETED") return { status: "completed", outcome: { files: [] } };
  throw new VendorTrouble(200, `told the unknown status ${JSON.stringify(status)}`);
}

/** What a job came to. @throws VendorTrouble where it is not said now */
export function falResult({ status, headers, body, asked, before }: NativeResult): TaskNews {
  const json = jsonOf({ body });
  if (status >= 200 && status < 300 && json !== undefined) {
    const type = asked.images === undefined ? ModelType.VIDEO : ModelType.IMAGE;
    const units = falUnits(json, { type, asked, headers });
    return { status: "completed", outcome: { files: falFiles(json), units } };
  }
  if (isPassing(status)) throw new VendorTrouble(status, `answered a result with status ${status}`);
  return before === cancelling
    ? falCancelled(headers, asked.images !== undefined)
    : falFailure(status, body);
}

/** What a result that is none says of its job. */
export function falFailure(status: number, body: Buffer): TaskNews {
  const said = falDetail(body);
  if (isFalContent(body)) return failed("content_rejected", said);
  const isInput = status === 400 || status === 422;
  return failed(isInput ? "invalid_parameters" : "upstream_error", isInput ? said : undefined);
}

/** It says how much of the unit it bills, also for what it stopped. */
export function falCancelled(headers: NativeResult["headers"], isPicture: boolean): TaskNews {
  const billed = falBilled(headers) ?? 0;
  if (billed === 0) return { status: "cancelled" };
  const units = isPicture ? { images: Math.ceil(billed) } : { seconds: billed };
  return { status: "cancelled", taken: { units } };
}

/** Whether the status of a result is about the gateway or about fal, and not about the job. */
export function isPassing(status: number): boolean {
  return status < 400 || status > 500 || [401, 402, 403, 408, 429].includes(status);
}

function failed(
  code: "content_rejected" | "invalid_parameters" | "upstream_error",
  said: string | undefined,
): TaskNews {
  return { status: "failed", error: { code, message: faultText(code, said) } };
}

/** The files in a result. */
export function falFiles(result: JsonObject): readonly VendorFile[] {
  return filesIn(result, 0);
}

/** How deep files may be in a result: `{"images":[{"url":…}]}`. */
const depthMax = 4;

function filesIn(value: JsonValue, depth: number): readonly VendorFile[] {
  if (typeof value !== "object" || value === null || depth > depthMax) return [];
  if (Array.isArray(value)) return value.flatMap((each) => filesIn(each, depth + 1));
  const { url, content_type: type } = value;
  if (typeof url === "string") return fileOf(url, typeof type === "string" ? type : undefined);
  return Object.values(value).flatMap((each) =>
    isRecord(each) || Array.isArray(each) ? filesIn(each, depth + 1) : [],
  );
}

function fileOf(url: string, type: string | undefined): readonly VendorFile[] {
  const [, written, data] = /^data:([\w.+-]+\/[\w.+-]+)[^,]*;base64,([\s\S]+)$/.exec(url) ?? [];
  if (written !== undefined && data !== undefined) {
    return [{ bytes: Buffer.from(data, "base64"), contentType: written }];
  }
  return /^https?:\/\//.test(url) && URL.canParse(url)
    ? [{ url, contentType: type ?? typeOf(url) }]
    : [];
}

function typeOf(url: string): string {
  const ending = /\.([a-z0-9]{1,5})$/i.exec(new URL(url).pathname)?.[1]?.toLowerCase() ?? "";
  return contentTypes[ending] ?? "application/octet-stream";
}
