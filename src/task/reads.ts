/** The RPCs of tasks that change nothing: what the command line needs without a running server, too. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { TaskStatus } from "../../gen/uas/task/v1/task_pb.ts";
import type {
  GetTaskRequest,
  ListTasksRequest,
  TaskService,
} from "../../gen/uas/task/v1/task_service_pb.ts";
import { callerKey } from "../caller.ts";
import { requireActive } from "../inference/pipeline/admit.ts";
import { pollWaitSecondsMax } from "../config/task-limits.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { matchesEtag } from "../etag.ts";
import { cutPage, readPage } from "../page-token.ts";
import { isUuid } from "../uuid.ts";
import { invalid, noSuchTask } from "./failures.ts";
import type { TaskFeed } from "./feed.ts";
import { etagOf, pollAfterSeconds, taskMessage } from "./message.ts";
import { isEnded, publicState, taskStates } from "./state.ts";
import type { SeenTask, TaskStore } from "./store.ts";
import { Parking, poll, watch } from "./wait.ts";

/** What {@link createTaskReads} needs. */
export interface TaskReadsOptions {
  readonly store: TaskStore;
  /** Tells of changes. Default: nobody does, and polls do not wait. */
  readonly feed?: TaskFeed | undefined;
  /** The places of those who wait. Default: places of its own. */
  readonly parking?: Parking;
}

type Reads = Pick<ServiceImpl<typeof TaskService>, "getTask" | "watchTask" | "listTasks">;

/** Makes them. */
export function createTaskReads({ store, feed, parking = new Parking() }: TaskReadsOptions): Reads {
  return {
    async getTask(request, context) {
      const { isOperator, accountId } = scopeOf(context);
      const { taskId } = request;
      const { requestHeader, signal } = context;
      const known = requestHeader.get("if-none-match");
      const find = () => store.find(taskId, accountId);
      const task =
        (await poll(
          {
            accountId: accountId ?? "",
            taskId,
            read: find,
            waitMs: waitMsOf(request),
            knows: known === null ? undefined : (seen) => matchesEtag(known, etagOf(seen)),
            signal,
          },
          { feed, parking },
        )) ?? (isOperator ? await store.findByRequest(taskId) : undefined);
      if (task === undefined) throw noSuchTask();
      tell(context.responseHeader, task);
      return { task: taskMessage(task, { isOperator }) };
    },

    async *watchTask({ taskId }, context) {
      const { isOperator, accountId } = scopeOf(context);
      const read = () => store.find(taskId, accountId);
      const task = await read();
      if (task === undefined) throw noSuchTask();
      using place = parking.enter(task.account_id);
      if (place === undefined || feed === undefined) throw tooManyWatches();
      for await (const seen of watch({ taskId, read, signal: context.signal }, feed)) {
        yield { task: taskMessage(seen, { isOperator }) };
      }
    },

    async listTasks(request, context) {
      const { isOperator } = scopeOf(context);
      const page = readPage(request, { isKey: isUuid });
      const rows = await store.list(page, accountOf(request, context), statesOf(request));
      const { items, nextPageToken } = cutPage(page, rows, (row) => row.id);
      return { tasks: items.map((row) => taskMessage(row, { isOperator })), nextPageToken };
    },
  };
}

/** Whose tasks somebody may see. */
export interface Scope {
  readonly isOperator: boolean;
  /** The only account whose tasks the caller may see; `undefined`: all. */
  readonly accountId: string | undefined;
}

/** Whose tasks the caller may see. @throws GatewayError ACCESS_DENIED for suspended accounts */
export function scopeOf({ values }: HandlerContext): Scope {
  const caller = values.get(callerKey);
  if (caller?.kind === "operator") return { isOperator: true, accountId: undefined };
  if (caller === undefined || caller.kind === "anonymous") {
    throw new GatewayError(ErrorCode.ACCESS_DENIED, "Tasks need an API key: send one");
  }
  if (caller.kind === "key") requireActive(caller);
  return { isOperator: false, accountId: caller.accountId };
}

/** The account whose tasks to list. @throws GatewayError */
function accountOf({ accountId }: ListTasksRequest, context: HandlerContext): string {
  const { accountId: own } = scopeOf(context);
  if (accountId === "" && own !== undefined) return own;
  if (!isUuid(accountId)) throw invalid("accountId", "is required, as the account's id");
  if (own === undefined || own === accountId) return accountId;
  throw new GatewayError(ErrorCode.NOT_FOUND, "there is no such account");
}

/** The states that the caller wants to see; `undefined`: all. */
function statesOf({ status }: ListTasksRequest): readonly string[] | undefined {
  if (status === TaskStatus.UNSPECIFIED) return undefined;
  return taskStates.filter((state) => publicState(state).status === status);
}

/** @throws GatewayError INVALID_REQUEST */
function waitMsOf({ wait }: GetTaskRequest): number {
  if (wait >= 0 && wait <= pollWaitSecondsMax) return wait * 1_000;
  throw invalid("wait", `must be 0 to ${pollWaitSecondsMax} seconds`);
}

/** What goes with a task that is read. */
function tell(header: Headers, task: SeenTask): void {
  header.set("etag", etagOf(task));
  if (isEnded(task.state)) return;
  header.set("retry-after", String(pollAfterSeconds(task, Date.now())));
}

function tooManyWatches(): GatewayError {
  return new GatewayError(
    ErrorCode.QUEUE_FULL,
    "Too many polls and watches of this account wait already: end some, or poll without waiting",
  );
}
