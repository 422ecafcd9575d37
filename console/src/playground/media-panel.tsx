/**
 * Generating images, videos and audio: a task, submitted as any program does it, and followed until
 * its end.
 */
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { clsx } from "clsx";
import { useState } from "react";
import type { Model } from "../../../gen/uas/inference/v1/model_pb.ts";
import { TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import {
  type GetModelSchemaResponse,
  TaskService,
} from "../../../gen/uas/task/v1/task_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useText } from "../common/language.tsx";
import { taskSnippet } from "../common/snippets.ts";
import { TaskBadge, TaskProgress, TaskResult, useTask } from "../tasks/task.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Skeleton } from "../ui/card.tsx";
import { AreaField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { bodyOf } from "./conversation.ts";
import { RunSide } from "./run-side.tsx";
import { usePlaygroundKey } from "./use-key.ts";

/** Runs a task with parameters that are written as JSON, starting with an example. */
export function TaskPanel({ model: { modelKey } }: { model: Model }) {
  const { data, error } = useQuery(TaskService.method.getModelSchema, { modelKey });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <Skeleton className="h-96" />;
  return <TaskForm key={modelKey} schema={data} />;
}

function TaskForm({
  schema: { modelKey, paramsField, example },
}: {
  schema: GetModelSchemaResponse;
}) {
  const { playground: text } = useText();
  const [written, setWritten] = useState(() => JSON.stringify(example ?? {}, undefined, 2));
  const [taskId, setTaskId] = useState<string>();
  const [requestId, setRequestId] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const keyOf = usePlaygroundKey();
  const params = readObject(written);
  const body = { modelKey, [paramsField]: params ?? {} };
  const submit = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const made = await submitTask(body, await keyOf());
      setTaskId(made.taskId);
      setRequestId(made.requestId);
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,1fr)_22rem]">
      <Card className="flex flex-col gap-4 p-5">
        <AreaField
          label={text.params}
          error={params === undefined ? text.paramsWrong : undefined}
          rows={8}
          spellCheck={false}
          value={written}
          onChange={(event) => setWritten(event.target.value)}
          className="font-mono text-xs"
        />
        <ErrorNote error={failure} />
        <Button
          tone="primary"
          size="medium"
          className="self-start"
          isBusy={isBusy}
          disabled={params === undefined}
          onClick={() => void submit()}
        >
          {text.run}
        </Button>
        {taskId !== undefined && <Running key={taskId} taskId={taskId} />}
      </Card>
      <RunSide
        requestId={requestId}
        codeHint={text.codeNext}
        code={[{ id: "curl", title: "curl", code: taskSnippet({ origin: apiOrigin(), body }) }]}
      />
    </div>
  );
}

function Running({ taskId }: { taskId: string }) {
  const { playground: text } = useText();
  const { task, error } = useTask(taskId);
  if (error !== undefined) return <ErrorNote error={error} />;
  if (task === undefined) return null;
  return (
    <div className="flex flex-col gap-4 border-t border-line pt-4">
      <div role="status" className="flex items-center gap-4">
        <TaskBadge task={task} />
        {task.status === TaskStatus.PROGRESS && <TaskProgress task={task} />}
      </div>
      {task.errorMessage !== "" && <p className="text-bad">{task.errorMessage}</p>}
      <TaskResult task={task} />
      <Link to="/tasks" search={{ task: taskId }} className={clsx(buttonClass(), "self-start")}>
        {text.openTask}
      </Link>
    </div>
  );
}

/** Parses a JSON object; undefined if it is none. */
function readObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Submits a task over the documented path. @throws Error with the gateway's message */
async function submitTask(
  body: object,
  key: string,
): Promise<{ taskId: string; requestId: string }> {
  const response = await fetch(`${apiOrigin()}/api/ai/tasks`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    // This path ignores the session cookie, so it is not sent.
    credentials: "omit",
    body: bodyOf(body),
  });
  const told = (await response.json()) as { taskId?: string; error?: { message?: string } };
  if (told.taskId === undefined) throw new Error(told.error?.message ?? String(response.status));
  return { taskId: told.taskId, requestId: response.headers.get("x-request-id") ?? "" };
}
