/** Platform JSON: the contract's own messages, with the documented words for enum values. */
import {
  type DescMessage,
  isMessage,
  type JsonObject,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { GetCreditsResponseSchema } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import {
  type ListModelsResponse,
  ListModelsResponseSchema,
} from "../../gen/uas/inference/v1/inference_service_pb.ts";
import {
  type CancelBilling,
  CancelBillingSchema,
  type Model,
  type ModelType,
  ModelTypeSchema,
} from "../../gen/uas/inference/v1/model_pb.ts";
import { GetCurrentKeyResponseSchema } from "../../gen/uas/key/v1/key_service_pb.ts";
import { type Task, type TaskStatus, TaskStatusSchema } from "../../gen/uas/task/v1/task_pb.ts";
import {
  CancelTaskResponseSchema,
  type GetModelSchemaResponse,
  GetModelSchemaResponseSchema,
  GetTaskResponseSchema,
  type ListTasksResponse,
  ListTasksResponseSchema,
  SubmitTaskResponseSchema,
} from "../../gen/uas/task/v1/task_service_pb.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { statusWord, submittedJson, taskJson } from "../core/task-json.ts";
import { errorBody } from "./codec.ts";
import type { Dialect } from "./dialect.ts";
import { keyBody, creditsBody } from "./key-facts.ts";

export const platform: Dialect = {
  word: "platform",
  requestIdHeaders: ["x-request-id"],
  errorBody,
  queryFields,
  replyBody(schema: DescMessage, message: Message): JsonObject | Uint8Array {
    if (isMessage(message, GetCurrentKeyResponseSchema)) return keyBody(message);
    if (isMessage(message, GetCreditsResponseSchema)) return creditsBody(message);
    if (isMessage(message, ListModelsResponseSchema)) return listModels(message);
    if (isMessage(message, SubmitTaskResponseSchema)) return submittedJson(there(message.task));
    if (isMessage(message, GetTaskResponseSchema)) return taskJson(there(message.task));
    if (isMessage(message, CancelTaskResponseSchema)) return taskJson(there(message.task));
    if (isMessage(message, ListTasksResponseSchema)) return listTasks(message);
    if (isMessage(message, GetModelSchemaResponseSchema)) return modelSchema(message);
    return toJson(schema, message, { alwaysEmitImplicit: true }) as JsonObject;
  },
};

/**
 * Enum values are the documented words. @throws GatewayError INVALID_REQUEST, naming the parameter
 */
function queryFields({ status, ...query }: JsonObject): JsonObject {
  if (status === undefined) return query;
  const statuses = TaskStatusSchema.values.map(({ number }) => number as TaskStatus).slice(1);
  const found = statuses.find((each) => statusWord(each) === status);
  if (found !== undefined) return { ...query, status: found };
  const text = `status: must be one of ${statuses.map(statusWord).join(", ")}`;
  throw new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "status" });
}

function listTasks({ tasks, nextPageToken }: ListTasksResponse): JsonObject {
  return { tasks: tasks.map(taskJson), ...(nextPageToken && { nextPageToken }) };
}

function modelSchema(response: GetModelSchemaResponse): JsonObject {
  const { modelKey, type, paramsField, schema = {}, example = {} } = response;
  return { modelKey, type: typeWord(type), paramsField, schema, example };
}

function there(task: Task | undefined): Task {
  if (task === undefined) throw new Error("the answer has no task");
  return task;
}

function listModels(response: ListModelsResponse): JsonObject {
  const { models, nextPageToken } = response;
  return { models: models.map(modelJson), ...(nextPageToken && { nextPageToken }) };
}

function modelJson(model: Model): JsonObject {
  return {
    modelKey: model.modelKey,
    name: model.name,
    type: typeWord(model.type),
    price: priceJson(model),
    maxOutputTokens: model.maxOutputTokens || null,
    maxContextTokens: model.maxContextTokens || null,
    endpoints: model.endpoints,
    features: model.features,
    deadlineMs: model.deadline ? durationMs(model.deadline) : null,
    cancelBilling: billingWord(model.cancelBilling),
  };
}

/** A model's price, in decimal USD: the units that are charged. */
export function priceJson({ price }: Pick<Model, "price">): JsonObject {
  const tiers = price?.tiers.map((tier) => ({ above: tier.above, ...charged(tier) })) ?? [];
  const services = price?.serviceTiers.map((each) => [each.tier, priceJson(each)] as const) ?? [];
  const images = price?.images.map((image) => charged(image)) ?? [];
  return {
    ...charged({ ...price, serviceTier: "" }),
    ...(tiers.length > 0 && { tiers }),
    ...(images.length > 0 && { images }),
    ...(services.length > 0 && { serviceTiers: Object.fromEntries(services) }),
  };
}

/** The members of a price that say something. */
function charged(price: object): Record<string, string> {
  const prices = Object.entries(price).filter(
    (entry): entry is [string, string] =>
      !entry[0].startsWith("$") && typeof entry[1] === "string" && entry[1] !== "",
  );
  return Object.fromEntries(prices);
}

/** The documented word of what cancelled tasks cost: `none`. */
function billingWord(billing: CancelBilling): string {
  const value = CancelBillingSchema.values.find(({ number }) => number === billing);
  return value?.localName.toLowerCase() ?? "";
}

/** The documented word of a model type: the value's name without its prefix, `TEXT`. */
export function typeWord(type: ModelType): string {
  return ModelTypeSchema.values.find((value) => value.number === type)?.localName ?? "";
}
