/** Tasks: the list by status, and one in detail as it goes on. */
import { useInfiniteQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { ListChecks } from "lucide-react";
import { type Task, TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { defined, type TaskSearch, taskStatuses } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { localZone } from "../common/time.ts";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Segments } from "../ui/field.tsx";
import { Amount, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, MoreRows, RowButton, Table } from "../ui/table.tsx";
import { TaskSheet } from "./task-sheet.tsx";
import { TaskBadge, taskDuration, TaskProgress } from "./task.tsx";

/** How many tasks a page of the list has. */
const pageSize = 50;

/** How often the list is asked for anew while a task of it is running, in milliseconds. */
const runningMs = 3_000;

const statuses = {
  progress: TaskStatus.PROGRESS,
  completed: TaskStatus.COMPLETED,
  failed: TaskStatus.FAILED,
  cancelled: TaskStatus.CANCELLED,
} as const;

/** The page. */
export function TasksPage() {
  const { tasks: text, common } = useText();
  const search = useSearch({ from: "/inside/tasks" });
  const navigate = useNavigate({ from: "/tasks" });
  const set = (next: TaskSearch): void => void navigate({ search: next, replace: true });
  const { task: openId, status } = search;
  return (
    <>
      <PageHead title={text.title} hint={`${text.hint} ${common.zoneNote(localZone())}`} />
      <Card>
        <div className="border-b border-line p-4">
          <Segments
            label={common.status}
            value={status ?? "all"}
            choices={[
              { value: "all", label: common.all },
              ...taskStatuses.map((value) => ({
                value,
                label: text.statuses[statuses[value]] ?? "",
              })),
            ]}
            onChoose={(value) => set(value === "all" ? {} : { status: value })}
          />
        </div>
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
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    TaskService.method.listTasks,
    {
      accountId,
      pageSize,
      pageToken: "",
      status: status === undefined ? TaskStatus.UNSPECIFIED : statuses[status],
    },
    {
      pageParamKey: "pageToken",
      getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined,
      placeholderData: keepPreviousData,
      refetchInterval: ({ state }) =>
        state.data?.pages.some(({ tasks }) =>
          tasks.some((each) => each.status === TaskStatus.PROGRESS),
        ) === true && runningMs,
    },
  );
  const columns = taskColumns(texts, onOpen);
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  return (
    <>
      <Table
        label={text.title}
        columns={columns}
        rows={data?.pages.flatMap(({ tasks }) => tasks)}
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
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage()}
      />
    </>
  );
}

function taskColumns({ tasks: text, common }: Texts, onOpen: (task: Task) => void): Column<Task>[] {
  return [
    {
      id: "time",
      title: text.submitted,
      cell: (task) => (
        <RowButton onOpen={() => onOpen(task)}>
          <span className="sr-only">{text.open(task.taskId)}</span>
          <span aria-hidden="true">
            <Time time={task.createTime} />
          </span>
        </RowButton>
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
      cell: ({ modelKey }) => (
        <span className="block max-w-48 truncate font-mono text-xs" title={modelKey}>
          {modelKey}
        </span>
      ),
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
