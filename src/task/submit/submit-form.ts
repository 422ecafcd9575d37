/** Parses the request of a submit. Errors are 400s that name the member. */
import { createHash } from "node:crypto";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { SubmitTaskRequest } from "../../../gen/uas/task/v1/task_service_pb.ts";
import type { ModelConfig } from "../../config/config.ts";
import { checkIdempotencyKey, idempotencyHeader } from "../../core/idempotency-key.ts";
import { readPublicUrl } from "../../http/public-url.ts";
import { invalidParam } from "../failures.ts";
import type { TaskModel, TaskSchemas } from "../schema/schemas.ts";

/** A valid submit. */
export interface ParsedSubmit {
  readonly taskModel: TaskModel;
  /** In canonical names. */
  readonly params: JsonObject;
  readonly callbackId: string | null;
  /** The member or header that brought the callback id, for errors. */
  readonly callbackIdName: string;
  readonly callbackUrl: string | null;
  readonly fingerprint: Buffer;
}

interface ParseSubmitOptions {
  /** Finds the model. @throws GatewayError MODEL_NOT_FOUND or ACCESS_DENIED */
  readonly authorize: (modelKey: string) => ModelConfig;
  readonly schemas: TaskSchemas;
  /** Hosts of callbacks that need not be public. */
  readonly allowHosts: readonly string[];
  /** The header `idempotency-key`; null if absent. */
  readonly idempotencyKey: string | null;
}

/** Checks a submit. @throws GatewayError INVALID_REQUEST, MODEL_NOT_FOUND, ACCESS_DENIED */
export function parseSubmit(request: SubmitTaskRequest, options: ParseSubmitOptions): ParsedSubmit {
  const { modelKey } = request;
  const { case: givenField = "params", value: given = {} } = request.params;
  const [callbackIdName, callbackId] = readCallbackId(request, options.idempotencyKey);
  const callbackUrl = readCallbackUrl(request, options.allowHosts);
  const taskModel = options.schemas.of(options.authorize(modelKey));
  const { field } = taskModel;
  if (givenField !== field) {
    throw invalidParam(givenField, `does not fit the model \`${modelKey}\`: send ${field}`);
  }
  const params = taskModel.read(given);
  const asked = { modelKey, callbackUrl: callbackUrl ?? "", field, params };
  const named = { callbackId, callbackIdName, callbackUrl };
  return { taskModel, params, ...named, fingerprint: fingerprint(asked) };
}

function readCallbackId(
  { callbackId }: SubmitTaskRequest,
  key: string | null,
): readonly [name: string, id: string | null] {
  if (callbackId === undefined) return [idempotencyHeader, readIdempotencyKey(key)];
  return ["callbackId", callbackId];
}

/**
 * The header's value; null if none was sent.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function readIdempotencyKey(key: string | null): string | null {
  if (key === null) return null;
  return checkIdempotencyKey(key, "; callbackId in the body accepts any text");
}

function readCallbackUrl(
  { callbackUrl }: SubmitTaskRequest,
  allowHosts: readonly string[],
): string | null {
  if (callbackUrl === "") return null;
  const read = readPublicUrl(callbackUrl, allowHosts);
  if ("url" in read) return read.url.href;
  throw invalidParam("callbackUrl", read.problem);
}

/** The content of a submit that makes two submits equal under one callback id. */
interface FingerprintInput {
  readonly modelKey: string;
  readonly callbackUrl: string;
  /** The name of the parameter object. */
  readonly field: string;
  readonly params: JsonObject;
}

/**
 * The SHA-256 of a submit's canonical JSON: the order of members does not matter, and absent
 * members stay absent.
 */
export function fingerprint({ modelKey, callbackUrl, field, params }: FingerprintInput): Buffer {
  return createHash("sha256")
    .update(canonicalJson({ callbackUrl, modelKey, [field]: params }))
    .digest();
}

/**
 * JSON with the members of each object in the order of their names. The depth of a body limits its
 * recursion.
 */
function canonicalJson(value: JsonValue): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`);
  return `{${members.join(",")}}`;
}
