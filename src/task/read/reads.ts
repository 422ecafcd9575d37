/**
 * The read RPCs of tasks: get (with long polling), watch and list. The command line also uses them
 * without a server.
 */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import type { ListTasksRequest, TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { parkedPollsMax } from "../../core/limits.ts";
import { callerKey } from "../../core/caller.ts";
import { noSuchAccount, requireActive } from "../../core/caller-rules.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { matchesEtag } from "../../core/etag.ts";
import { isUuid } from "../../core/uuid.ts";
import { invalidParam, noSuchTask } from "../failures.ts";
import type { TaskFeed } from "./feed.ts";
import { etagOf, pollAfterSeconds, taskMessage } from "../message.ts";
import { isEnded, publicState, taskStates } from "../state.ts";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { TaskSummary, TaskStore } from "../store.ts";

/** Options of {@link createTaskReads}. */
export interface TaskReadsOptions {
  readonly store: TaskStore;
  /** Notifies of changes. None by default; polls then do not wait. */
  readonly feed?: TaskFeed | undefined;
  /** Limits the waiting polls of each account. Separate limits by default. */
  readonly waitSlots?: WaitSlots;
  /** The clock for running times of tasks. The system clock by default. */
  readonly clock?: Pick<Clock, "now">;
}

type Reads = Pick<ServiceImpl<typeof TaskService>, "getTask" | "watchTask" | "listTasks">;

/** Creates the task reads. */
export function createTaskReads({
  store,
  feed,
  waitSlots = new WaitSlots(),
  clock = systemClock,
}: TaskReadsOptions): Reads {
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
            waitMs: request.wait * 1_000,
            knows: known === null ? undefined : (seen) => matchesEtag(known, etagOf(seen)),
            signal,
          },
          { feed, waitSlots },
        )) ?? (isOperator ? await store.findByRequest(taskId) : undefined);
      if (task === undefined) throw noSuchTask();
      setTaskHeaders(context.responseHeader, task, clock.now());
      return { task: taskMessage(task, { isOperator }) };
    },

    async *watchTask({ taskId }, context) {
      const { isOperator, accountId } = scopeOf(context);
      const read = () => store.find(taskId, accountId);
      const task = await read();
      if (task === undefined) throw noSuchTask();
      using place = waitSlots.enter(task.account_id);
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

/** The tasks that a caller may see. */
interface Scope {
  readonly isOperator: boolean;
  /** The only account whose tasks the caller may see; undefined for all. */
  readonly accountId: string | undefined;
}

/** The tasks that the caller may see. @throws GatewayError ACCESS_DENIED for suspended accounts */
export function scopeOf({ values }: HandlerContext): Scope {
  const caller = values.get(callerKey);
  if (caller?.kind === "operator") return { isOperator: true, accountId: undefined };
  if (caller === undefined || caller.kind === "anonymous") {
    throw new GatewayError(ErrorCode.ACCESS_DENIED, "Tasks need an API key: send one");
  }
  if (caller.kind === "key") requireActive(caller);
  return { isOperator: false, accountId: caller.accountId };
}

/**
 * The account whose tasks to list. @throws GatewayError INVALID_REQUEST; NOT_FOUND for another
 * account
 */
function accountOf({ accountId }: ListTasksRequest, context: HandlerContext): string {
  const { accountId: own } = scopeOf(context);
  if (accountId === "" && own !== undefined) return own;
  if (accountId === "") throw invalidParam("accountId", "is required, as the account's id");
  if (own === undefined || own === accountId) return accountId;
  throw noSuchAccount();
}

/** The states in the request; undefined for all. */
function statesOf({ status }: ListTasksRequest): readonly string[] | undefined {
  if (status === TaskStatus.UNSPECIFIED) return undefined;
  return taskStates.filter((state) => publicState(state).status === status);
}

/** Adds the entity tag, and for a running task the suggested pause before the next poll. */
function setTaskHeaders(header: Headers, task: TaskSummary, nowMs: number): void {
  header.set("etag", etagOf(task));
  if (isEnded(task.state)) return;
  header.set("retry-after", String(pollAfterSeconds(task, nowMs)));
}

function tooManyWatches(): GatewayError {
  return new GatewayError(
    ErrorCode.QUEUE_FULL,
    "This account has too many waiting polls and watches: end some, or poll without waiting",
  );
}

/** Reads a task; undefined if the caller's account has none with that id. */
type ReadTask = () => Promise<TaskSummary | undefined>;

/** A poll that may wait. */
interface Poll {
  readonly accountId: string;
  readonly taskId: string;
  readonly read: ReadTask;
  /** Maximum wait. */
  readonly waitMs: number;
  /**
   * Whether the client has this version of the task already. By default it has the version that is
   * read first.
   */
  readonly knows?: ((task: TaskSummary) => boolean) | undefined;
  /** Aborted when the client disconnects or the gateway stops: the poll then answers at once. */
  readonly signal: AbortSignal;
}

/** Limits the number of an account's concurrent polls and watches. */
export class WaitSlots {
  readonly #byAccount = new Map<string, number>();

  /** Number of waiting polls of all accounts. */
  get count(): number {
    let count = 0;
    for (const each of this.#byAccount.values()) count += each;
    return count;
  }

  /** Takes a slot until it is disposed; undefined if the account has no free slot. */
  enter(accountId: string): Disposable | undefined {
    const taken = this.#byAccount.get(accountId) ?? 0;
    if (taken >= parkedPollsMax) return undefined;
    this.#byAccount.set(accountId, taken + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#byAccount.get(accountId) ?? 1) - 1;
        if (left === 0) this.#byAccount.delete(accountId);
        else this.#byAccount.set(accountId, left);
      },
    };
  }
}

/**
 * Answers a poll: at once if the task has changed or ended, otherwise at its next change or after
 * `waitMs`.
 */
export async function poll(
  { accountId, taskId, read, waitMs, knows, signal }: Poll,
  { feed, waitSlots }: { readonly feed: TaskFeed | undefined; readonly waitSlots: WaitSlots },
): Promise<TaskSummary | undefined> {
  using place = waitMs > 0 && feed !== undefined ? waitSlots.enter(accountId) : undefined;
  if (place === undefined || feed === undefined) return read();
  using changes = feed.subscribe(taskId);
  const endMs = performance.now() + waitMs;
  let task = await read();
  const first = task?.version;
  const isNews = (seen: TaskSummary): boolean =>
    knows === undefined ? seen.version !== first : !knows(seen);
  while (task !== undefined && !isEnded(task.state) && !isNews(task)) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || signal.aborted) break;
    await changes.next(leftMs, signal);
    task = await read();
  }
  return task;
}

/**
 * Interval at which a watch reads its task without a notification. It limits the delay after a
 * missed notification.
 */
const watchRecheckMs = 60_000;

/** Yields a task as it is, and after each change; ends with the task or the signal. */
async function* watch(
  { taskId, read, signal }: Pick<Poll, "taskId" | "read" | "signal">,
  feed: TaskFeed,
): AsyncGenerator<TaskSummary> {
  using changes = feed.subscribe(taskId);
  for (let version = 0; !signal.aborted; await changes.next(watchRecheckMs, signal)) {
    const task = await read();
    if (task === undefined) return;
    if (task.version !== version) yield task;
    ({ version } = task);
    if (isEnded(task.state)) return;
  }
}
