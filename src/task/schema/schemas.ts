/** The parameter schemas of the configured models, and the check of parameters by them. */
import type { MaxUsage } from "../../billing/prices/pricing.ts";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { ModelConfig, RouteConfig } from "../../config/config.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { readPublicUrl } from "../../http/public-url.ts";
import { textGeneration } from "../../calls/adapters/text-task.ts";
import { maxUnits } from "../../provider/task-params.ts";
import type { VendorTasks } from "../../provider/task.ts";
import { invalidParam } from "../failures.ts";
import { baseSchema, examples, paramsFields, textUnits } from "./forms.ts";
import { snakeCase } from "./members.ts";

/** The task parameters of a model. */
export interface TaskModel {
  readonly model: ModelConfig;
  /** The member of a submit that contains the parameters, for example `imageParams`. */
  readonly field: (typeof paramsFields)[keyof typeof paramsFields];
  readonly schema: JsonObject;
  /** Parameters that the schema accepts. */
  readonly example: JsonObject;
  /**
   * Checks parameters and converts them to their canonical names.
   *
   * @throws GatewayError INVALID_REQUEST
   */
  readonly read: (params: JsonObject) => JsonObject;
  /** The most that a task with these parameters can be charged for. */
  readonly units: (params: JsonObject) => MaxUsage;
}

/** Finds the task parameters of models. */
export interface TaskSchemas {
  /** @throws GatewayError INVALID_REQUEST if no vendor of the model runs tasks */
  of(model: ModelConfig): TaskModel;
}

interface TaskSchemasOptions {
  /** The task interface of a route's vendor; undefined if it has none. */
  readonly tasksOf: (route: RouteConfig) => VendorTasks | undefined;
  /**
   * Whether the vendor of a route accepts TEXT tasks: some have texts in their native API only. All
   * do by default.
   */
  readonly takesText?: (route: RouteConfig) => boolean;
  /** Hosts of files that need not be public. None by default. */
  readonly allowHosts?: readonly string[];
}

/** Creates the lookup. A model's schema is built and compiled at its first use. */
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
  const { takesText = () => true } = options;
  if (type === ModelType.TEXT && !model.routes.some(takesText)) throw notATask(model);
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
      // Any of its vendors may get the task.
      for (const route of model.routes) options.tasksOf(route)?.checkParams?.(read, field);
      return read;
    },
    units: (params) =>
      vendor === undefined ? textUnits(params, model) : maxUnits(vendor.tasks, params, model),
  };
}

/**
 * Checks messages with the parser of text generation calls: their content is as varied as there.
 */
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

/**
 * The first route whose vendor runs such tasks: it decides their parameters.
 *
 * @throws GatewayError if there is none
 */
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
  const text = `modelKey: \`${key}\` does not run tasks; choose a model from GET /api/ai/models`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "modelKey" });
}

/** Checks parameter objects. */
interface ParamsCheck {
  /**
   * Reads parameters into canonical names: snake_case is accepted for all of them.
   *
   * @returns a new object
   * @throws GatewayError INVALID_REQUEST, naming the parameter
   */
  read(params: JsonObject): JsonObject;
}

interface ParamsCheckOptions {
  /** JSON Schema of the parameters. */
  readonly schema: JsonObject;
  /** The member of the request, for example `imageParams`. */
  readonly field: string;
  /** Hosts of files that need not be public. None by default. */
  readonly allowHosts?: readonly string[];
}

/**
 * Creates a check; compiles the schema once.
 *
 * @throws if the schema is invalid
 */
function createParamsCheck(options: ParamsCheckOptions): ParamsCheck {
  const { schema, field, allowHosts = [] } = options;
  const names = Object.keys((schema["properties"] ?? {}) as JsonObject);
  const canonical = new Map(
    names.flatMap((name) => [
      [snakeCase(name), name],
      [name, name],
    ]),
  );
  const validate = compile(schema, allowHosts);
  return {
    read(params) {
      const read = rename(params, { canonical, field });
      if (validate(read)) return read;
      throw refusal(validate.errors?.[0], field);
    },
  };
}

/** The form of an inline file. */
const dataUrl = /^data:[\w.+-]+\/[\w.+-]+(?:;[\w=.+-]+)*;base64,[A-Za-z0-9+/]+={0,2}$/;

function compile(schema: JsonObject, allowHosts: readonly string[]): ValidateFunction {
  const ajv = new Ajv2020({ strict: true });
  const isFile = (text: string): boolean =>
    text.startsWith("data:") ? dataUrl.test(text) : "url" in readPublicUrl(text, allowHosts);
  ajv.addFormat("uri", { type: "string", validate: isFile });
  return ajv.compile(schema);
}

interface Names {
  /** The canonical name by every name that is accepted. */
  readonly canonical: ReadonlyMap<string, string>;
  readonly field: string;
}

function rename(params: JsonObject, { canonical, field }: Names): JsonObject {
  const read: JsonObject = {};
  const unknown = Object.keys(params).filter((name) => !canonical.has(name));
  if (unknown.length > 0) throw unknownParams(unknown, field, canonical);
  for (const [given, value] of Object.entries(params)) {
    const name = canonical.get(given) ?? given;
    // Null means absent, as everywhere.
    if (value === null) continue;
    if (name in read)
      throw invalidParam(`${field}.${name}`, `occurs twice, once as ${given}; send it once`);
    read[name] = value;
  }
  return read;
}

/** Maximum number of unknown names that an error lists, and of characters of each. */
const namesMax = 10;
const nameCharsMax = 64;

function unknownParams(
  unknown: readonly string[],
  field: string,
  canonical: Names["canonical"],
): GatewayError {
  const shown = unknown.slice(0, namesMax).map((name) => `${field}.${name.slice(0, nameCharsMax)}`);
  const known = [...new Set(canonical.values())].join(", ");
  const text = `${shown.join(", ")}: not known to this model; it accepts ${known}`;
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: shown[0] ?? field });
}

/** 400 for the first schema error. */
function refusal(error: ErrorObject | undefined, field: string): GatewayError {
  if (error === undefined) return invalidParam(field, "does not match the model's schema");
  const { keyword, instancePath, params } = error;
  const at = `${field}${pathOf(instancePath)}`;
  if (keyword === "required" || keyword === "dependentRequired") {
    return invalidParam(`${at}.${String(params["missingProperty"])}`, "is missing");
  }
  if (keyword === "additionalProperties") {
    return invalidParam(
      `${at}.${String(params["additionalProperty"]).slice(0, nameCharsMax)}`,
      "is not known",
    );
  }
  return invalidParam(at, ruleText(error));
}

const ruleTexts: Readonly<Record<string, (error: ErrorObject) => string>> = {
  enum: ({ params }) =>
    `must be one of ${(params["allowedValues"] as readonly JsonValue[]).map(String).join(", ")}`,
  format: () => "must be an https address with a public host, or a data: address in base64",
  pattern: ({ params }) => `must match ${String(params["pattern"])}`,
  not: () => "must not contain a parameter that has a separate member: send it in that member",
};

function ruleText(error: ErrorObject): string {
  return ruleTexts[error.keyword]?.(error) ?? error.message ?? "does not match the model's schema";
}

/** `/messages/0/role` as `.messages[0].role`. */
function pathOf(pointer: string): string {
  const steps = pointer.split("/").slice(1);
  const names = steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.map((name) => (/^\d+$/.test(name) ? `[${name}]` : `.${name}`)).join("");
}
