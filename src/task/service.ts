/**
 * The RPCs of TaskService: submit, poll, watch, list and cancel tasks, and the parameter schema of
 * a model.
 */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SubmitTaskRequest, TaskService } from "../../gen/uas/task/v1/task_service_pb.ts";
import {
  type Caller,
  callerKey,
  type KeyCaller,
  requestIdKey,
  resolveRequestId,
} from "../core/caller.ts";
import { admitCaller } from "../core/caller-rules.ts";
import type { ModelConfig } from "../config/config.ts";
import { GatewayError } from "../core/errors.ts";
import type { Cancel } from "./work/cancel.ts";
import { taskMessage } from "./message.ts";
import { createTaskReads, scopeOf, type TaskReadsOptions } from "./read/reads.ts";
import type { TaskSchemas } from "./schema/schemas.ts";
import { parseSubmit } from "./submit/submit-form.ts";
import type { Submit } from "./submit/submit.ts";

/** Options of {@link createTaskService}. */
export interface TaskServiceOptions extends TaskReadsOptions {
  /** Finds a model. @throws GatewayError MODEL_NOT_FOUND or ACCESS_DENIED */
  readonly authorize: (caller: Caller, modelKey: string) => ModelConfig;
  readonly schemas: TaskSchemas;
  /** Hosts of callbacks that need not be public. None by default. */
  readonly allowHosts?: readonly string[];
  readonly submit: Submit;
  readonly cancel: Cancel;
}

/** Implements `uas.task.v1.TaskService`. */
export function createTaskService(options: TaskServiceOptions): ServiceImpl<typeof TaskService> {
  const { authorize, schemas, submit, cancel, allowHosts = [] } = options;
  return {
    ...createTaskReads(options),

    async submitTask(request, context) {
      const caller = keyCaller(context);
      const read = parseSubmit(request, {
        authorize: (modelKey) => named(() => authorize(caller, modelKey)),
        schemas,
        allowHosts,
        idempotencyKey: context.requestHeader.get("idempotency-key"),
      });
      const requestId = requestIdOf(request, context);
      context.values.set(requestIdKey, requestId);
      const traceparent = context.requestHeader.get("traceparent") ?? undefined;
      const { task, replayed } = await submit(read, { caller, requestId, traceparent });
      if (replayed) context.responseHeader.set("idempotent-replayed", "true");
      return { task: taskMessage(task, { isOperator: false }) };
    },

    async cancelTask({ taskId }, context) {
      const { isOperator, accountId } = scopeOf(context);
      return { task: taskMessage(await cancel(taskId, accountId), { isOperator }) };
    },

    getModelSchema({ modelKey }, context) {
      const { model, field, schema, example } = schemas.of(
        named(() => authorize(customer(context), modelKey)),
      );
      return { modelKey, type: model.type, paramsField: field, schema, example };
    },
  };
}

/** Finds a model; errors about its name refer to `modelKey`, as task requests call it. */
function named(find: () => ModelConfig): ModelConfig {
  try {
    return find();
  } catch (error) {
    if (!(error instanceof GatewayError) || error.param !== "model") throw error;
    throw new GatewayError(error.code, error.message, { param: "modelKey", cause: error });
  }
}

/**
 * A caller that may see models: an API key sees those that it may use, others see all. @throws
 * GatewayError ACCESS_DENIED
 */
function customer(context: HandlerContext): Caller {
  const caller = context.values.get(callerKey);
  return caller === undefined || caller.kind === "key" ? keyCaller(context) : caller;
}

/**
 * The caller's API key. The access option admits no other caller; an operator in process has no
 * account to charge.
 */
function keyCaller({ values }: HandlerContext): KeyCaller {
  return admitCaller(values.get(callerKey), "Tasks need an API key: send one");
}

/**
 * The request id: from the header, otherwise from the request's context, otherwise the generated
 * one.
 */
function requestIdOf({ requestContext }: SubmitTaskRequest, context: HandlerContext): string {
  const { requestHeader, values } = context;
  const sent = requestHeader.has("x-request-id") || requestHeader.has("request-id");
  const told = requestContext?.requestId ?? "";
  return !sent && resolveRequestId(told) === told ? told : values.get(requestIdKey);
}
