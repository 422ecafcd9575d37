/** Tasks: the list by status, and one task in detail. */
import { useInfiniteQuery, useMutation } from "@connectrpc/connect-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { type Task, TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { paged } from "../common/rpc.ts";
import { defined, type TaskSearch, taskStatuses } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { localZone } from "../common/time.ts";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, Facts, PageHead, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { FilterBar, FilterSegments } from "../ui/filter-bar.tsx";
import { useDone } from "../ui/form.tsx";
import { Amount, ErrorNote, Time, Truncated } from "../ui/show.tsx";
import { type Column, QueryTable, RowTime } from "../ui/table.tsx";
import { useErrorToast } from "../ui/toast.tsx";
import { TaskBadge, taskDuration, TaskProgress, TaskResult, useTask } from "./task.tsx";
import { errorWord } from "../common/contract.ts";

/** Tasks of one page of the list. */
const pageSize = 50;

/** Refresh interval of the list while one of its tasks is running. */
const runningMs = 3_000;

const statuses = {
  progress: TaskStatus.PROGRESS,
  completed: TaskStatus.COMPLETED,
  failed: TaskStatus.FAILED,
  cancelled: TaskStatus.CANCELLED,
} as const;

/** `/tasks`. */
export function TasksPage() {
  const { tasks: text, common } = useText();
  const search = useSearch({ from: "/inside/tasks" });
  const navigate = useNavigate({ from: "/tasks" });
  const set = (next: TaskSearch): void => void navigate({ search: next, replace: true });
  const { task: openId, status } = search;
  return (
    <>
      <PageHead title={text.title} hint={common.withZone(text.hint, localZone())} />
      <Card>
        <FilterBar label={text.title}>
          <FilterSegments
            label={common.status}
            any={common.all}
            value={status}
            choices={taskStatuses.map((value) => ({
              value,
              label: text.statuses[statuses[value]] ?? "",
            }))}
            onChoose={(chosen) => set(defined({ status: chosen }))}
          />
        </FilterBar>
        <TaskList search={search} onOpen={({ taskId }) => set(defined({ status, task: taskId }))} />
      </Card>
      <TaskSheet key={openId} taskId={openId} onClose={() => set(defined({ status }))} />
    </>
  );
}

function TaskList({ search, onOpen }: { search: TaskSearch; onOpen: (task: Task) => void }) {
  const texts = useText();
  const { tasks: text } = texts;
  const accountId = useAccountId();
  const { status, task: openId } = search;
  const query = useInfiniteQuery(
    TaskService.method.listTasks,
    {
      accountId,
      pageSize,
      pageToken: "",
      status: status === undefined ? TaskStatus.UNSPECIFIED : statuses[status],
    },
    {
      ...paged,
      refetchInterval: ({ state }) =>
        state.data?.pages.some(({ tasks }) =>
          tasks.some((each) => each.status === TaskStatus.PROGRESS),
        ) === true && runningMs,
    },
  );
  const columns = taskColumns(texts, onOpen);
  return (
    <QueryTable
      query={query}
      label={text.title}
      columns={columns}
      rows={query.data?.pages.flatMap(({ tasks }) => tasks)}
      keyOf={({ taskId }) => taskId}
      onOpen={onOpen}
      isOpen={({ taskId }) => taskId === openId}
      empty={
        status === undefined ? (
          <Empty icon={<ListChecks />} title={text.empty} hint={text.emptyHint} />
        ) : (
          <Empty title={text.noMatch} />
        )
      }
    />
  );
}

function taskColumns({ tasks: text, common }: Texts, onOpen: (task: Task) => void): Column<Task>[] {
  return [
    {
      id: "time",
      title: text.submitted,
      cell: (task) => (
        <RowTime
          time={task.createTime}
          label={text.open(task.taskId)}
          onOpen={() => onOpen(task)}
        />
      ),
    },
    { id: "status", title: common.status, cell: (task) => <TaskBadge task={task} /> },
    {
      id: "progress",
      title: text.progress,
      from: "md",
      cell: (task) => <TaskProgress task={task} />,
    },
    { id: "type", title: text.type, from: "lg", cell: ({ type }) => text.types[type] },
    {
      id: "model",
      title: common.model,
      cell: ({ modelKey }) => <Truncated text={modelKey} className="max-w-48 font-mono text-xs" />,
    },
    {
      id: "cost",
      title: common.cost,
      isNumber: true,
      from: "sm",
      cell: ({ cost }) => <Amount money={cost} />,
    },
    {
      id: "duration",
      title: text.duration,
      isNumber: true,
      from: "lg",
      cell: (task) => <span className="whitespace-nowrap">{taskDuration(task) ?? "—"}</span>,
    },
  ];
}

/** The details of a task; open while there is an id. */
function TaskSheet({ taskId, onClose }: { taskId: string | undefined; onClose: () => void }) {
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
  const done = useDone();
  const cancel = useMutation(TaskService.method.cancelTask, {
    onSuccess: () => done(text.cancelled),
    onError: useErrorToast(),
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
          [calls.fields.requestId, <Id key="request" isWhole value={task.requestId} />],
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
