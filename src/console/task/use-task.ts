/** A task as it goes on: the gateway tells each change. */
import { createClient } from "@connectrpc/connect";
import { useEffect, useState } from "react";
import type { Task } from "../../../gen/uas/task/v1/task_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { transport } from "../rpc.ts";

const client = createClient(TaskService, transport);

/** A task, followed until its end. */
export function useTask(taskId: string | undefined): { task?: Task; error?: unknown } {
  const [seen, setSeen] = useState<{ task?: Task; error?: unknown }>({});
  useEffect(() => {
    if (taskId === undefined) return undefined;
    const leaving = new AbortController();
    const { signal } = leaving;
    const follow = async (): Promise<void> => {
      for await (const { task } of client.watchTask({ taskId }, { signal })) {
        if (task !== undefined) setSeen({ task });
      }
    };
    follow().catch((error: unknown) => {
      if (!signal.aborted) setSeen((before) => ({ ...before, error }));
    });
    return () => leaving.abort();
  }, [taskId]);
  return seen;
}
