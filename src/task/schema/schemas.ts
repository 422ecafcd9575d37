/** What the models of this installation take as parameters of tasks. */
import type { JsonObject } from "@bufbuild/protobuf";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, RouteConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../errors.ts";
import { textGeneration } from "../../inference/text-task.ts";
import type { TaskUnits, VendorTasks } from "../../vendor/task.ts";
import { mostUnits } from "../../vendor/task-units.ts";
import { createParamsCheck } from "./check.ts";
import { baseSchema, examples, paramsFields } from "./forms.ts";
import { textUnits } from "./text-units.ts";

/** What a model's tasks are asked with. */
export interface TaskModel {
  readonly model: ModelConfig;
  /** The member of a submit that takes the parameters, for example `imageParams`. */
  readonly field: (typeof paramsFields)[keyof typeof paramsFields];
  readonly schema: JsonObject;
  /** Parameters that the schema accepts. */
  readonly example: JsonObject;
  /** Checks parameters and gives them their canonical names. @throws GatewayError INVALID_REQUEST */
  readonly read: (params: JsonObject) => JsonObject;
  /** The most that a task with these parameters can be charged for. */
  readonly units: (params: JsonObject) => TaskUnits;
}

/** Looks them up. */
export interface TaskSchemas {
  /** @throws GatewayError INVALID_REQUEST where no vendor of the model runs tasks */
  of(model: ModelConfig): TaskModel;
}

/** What {@link createTaskSchemas} needs. */
export interface TaskSchemasOptions {
  /** How the vendor of a route runs tasks; `undefined`: it does not. */
  readonly tasksOf: (route: RouteConfig) => VendorTasks | undefined;
  /** Hosts of files that need not be public. Default: none. */
  readonly allowHosts?: readonly string[];
}

/** Makes it. A model's schema is made and compiled when it is first asked for. */
export function createTaskSchemas(options: TaskSchemasOptions): TaskSchemas {
  const made = new Map<ModelConfig, TaskModel>();
  return {
    of(model) {
      const known = made.get(model) ?? createTaskModel(model, options);
      made.set(model, known);
      return known;
    },
  };
}

function createTaskModel(model: ModelConfig, options: TaskSchemasOptions): TaskModel {
  const { type } = model;
  const vendor = type === ModelType.TEXT ? undefined : vendorOf(model, options);
  const base = baseSchema(model);
  if (!isTaskType(type) || base === undefined) throw notATask(model);
  const schema = vendor?.tasks.paramsSchema?.(model, vendor.route) ?? base;
  const field = paramsFields[type];
  const { allowHosts = [] } = options;
  const check = createParamsCheck({ schema, field, allowHosts });
  return {
    model,
    field,
    schema,
    example: exampleOf(schema, examples[type]),
    read: (params) => {
      const read = check.read(params);
      if (type === ModelType.TEXT) checkText(read, { model, field });
      // Any of its vendors may come to be asked.
      for (const route of model.routes) options.tasksOf(route)?.checkParams?.(read, field);
      return read;
    },
    units: (params) =>
      vendor === undefined ? textUnits(params, model) : mostUnits(vendor.tasks, params, model),
  };
}

/** Parts of messages are as varied as in calls: what reads them there judges them here. */
function checkText(params: JsonObject, { model, field }: Pick<TaskModel, "model" | "field">): void {
  try {
    textGeneration(params, model.key);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const param = error.param === undefined ? field : `${field}.${error.param}`;
    throw new GatewayError(error.code, `${field}: ${error.message}`, { param, cause: error });
  }
}

function isTaskType(type: ModelType): type is keyof typeof paramsFields {
  return type in paramsFields;
}

/** The first route whose vendor runs such tasks decides what they take. @throws GatewayError where there is none */
function vendorOf(
  model: ModelConfig,
  { tasksOf }: TaskSchemasOptions,
): { readonly tasks: VendorTasks; readonly route: RouteConfig } {
  for (const route of model.routes) {
    const tasks = tasksOf(route);
    if (tasks?.types.has(model.type)) return { tasks, route };
  }
  throw notATask(model);
}

function exampleOf(schema: JsonObject, usual: JsonObject): JsonObject {
  const { examples: own } = schema;
  const [first] = Array.isArray(own) ? own : [];
  return typeof first === "object" && first !== null && !Array.isArray(first) ? first : usual;
}

function notATask({ key }: ModelConfig): GatewayError {
  const text = `modelKey: \`${key}\` does not run tasks; choose another one of those that GET /api/ai/models lists`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "modelKey" });
}
