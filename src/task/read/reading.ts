/**
 * Tasks of a process with the database but without vendors: a command line, or the supervisor of
 * several workers.
 */
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { serve, type Service } from "../../core/contract-rules.ts";
import type { Database } from "../../db/database.ts";
import { createTaskReads } from "./reads.ts";
import { createTaskStore } from "../store.ts";

/**
 * The read RPCs of tasks, for processes without a running server. The other RPCs refuse with a 503.
 */
export function createTaskReading({ taskPool }: Database): Service {
  const reads = createTaskReads({ store: createTaskStore(taskPool) });
  const refuse = (): never => {
    throw new GatewayError(
      ErrorCode.SERVICE_UNAVAILABLE,
      "This RPC needs a running gateway: start one",
    );
  };
  return serve(TaskService, {
    ...reads,
    submitTask: refuse,
    cancelTask: refuse,
    getModelSchema: refuse,
  });
}
