/** One task in detail. While it runs the gateway tells each change. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type Task, TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { useText } from "../language.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Facts, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { useToast } from "../ui/toast.tsx";
import { TaskResult } from "./task-result.tsx";
import { useTask } from "./use-task.ts";
import { TaskBadge, taskDuration, TaskProgress } from "./task-state.tsx";
import { errorWord } from "../error-word.ts";

/** The sheet; open while there is an id. */
export function TaskSheet({
  taskId,
  onClose,
}: {
  taskId: string | undefined;
  onClose: () => void;
}) {
  const { tasks: text } = useText();
  const { task, error } = useTask(taskId);
  return (
    <Sheet
      isOpen={taskId !== undefined}
      onClose={onClose}
      title={text.task}
      actions={task?.status === TaskStatus.PROGRESS && <CancelButton task={task} />}
    >
      {error !== undefined && <ErrorNote error={error} />}
      {error === undefined && task === undefined && <Skeleton className="h-64" />}
      {task !== undefined && <Details task={task} />}
    </Sheet>
  );
}

function CancelButton({ task: { taskId, cancelRequested } }: { task: Task }) {
  const { tasks: text } = useText();
  const toast = useToast();
  const queries = useQueryClient();
  const cancel = useMutation(TaskService.method.cancelTask, {
    onSuccess: async () => {
      toast({ title: text.cancelled });
      await queries.invalidateQueries();
    },
    onError: ({ rawMessage }) => toast({ title: rawMessage }),
  });
  return (
    <Button
      tone="danger"
      disabled={cancelRequested}
      isBusy={cancel.isPending}
      onClick={() => cancel.mutate({ taskId })}
    >
      {text.cancel}
    </Button>
  );
}

function Details({ task }: { task: Task }) {
  const { tasks: text, common, calls } = useText();
  const duration = taskDuration(task);
  return (
    <div className="flex flex-col gap-7">
      {task.errorMessage !== "" && (
        <section className="rounded-xl bg-warn-soft px-4 py-3 text-warn">
          <h3 className="font-semibold">{task.errorMessage}</h3>
          <p className="mt-1">{calls.advice(errorWord(task.errorCode))}</p>
        </section>
      )}
      <Facts
        rows={[
          [common.status, <TaskBadge key="status" task={task} />],
          [text.progress, <TaskProgress key="progress" task={task} />],
          [
            common.model,
            <span key="model" className="font-mono text-xs">
              {task.modelKey}
            </span>,
          ],
          [text.type, text.types[task.type]],
          [text.submitted, <Time key="time" time={task.createTime} />],
          ...(duration === undefined ? [] : [[text.duration, duration] as const]),
          ...(task.cost === undefined
            ? [[text.held, <Amount key="held" money={task.held} />] as const]
            : [[common.cost, <Amount key="cost" money={task.cost} />] as const]),
          [text.task, <Id key="id" isWhole value={task.taskId} />],
          ...(task.callbackId === ""
            ? []
            : [[text.callback, <Id key="cb" isWhole value={task.callbackId} />] as const]),
          ...(task.callbackUrl === "" ? [] : [[text.callbackUrl, task.callbackUrl] as const]),
          [calls.request, <Id key="request" isWhole value={task.requestId} />],
        ]}
      />
      <TaskResult task={task} />
      {task.callbackUrl !== "" && (
        <Link to="/webhooks" search={{ task: task.taskId }} className={buttonClass()}>
          {text.deliveries}
        </Link>
      )}
    </div>
  );
}
