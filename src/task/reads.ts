/** The RPCs of tasks that change nothing: what the command line needs without a running server, too. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { TaskStatus } from "../../gen/uas/task/v1/task_pb.ts";
import type { ListTasksRequest, TaskService } from "../../gen/uas/task/v1/task_service_pb.ts";
import { parkedPollsMax } from "../config/limits.ts";
import { callerKey } from "../core/caller.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { matchesEtag } from "../core/partial-update.ts";
import { isUuid } from "../core/uuid.ts";
import { requireActive } from "../inference/pipeline/admit.ts";
import { invalid, noSuchTask } from "./failures.ts";
import type { TaskFeed } from "./feed.ts";
import { etagOf, pollAfterSeconds, taskMessage } from "./message.ts";
import { isEnded, publicState, taskStates } from "./state.ts";
import type { SeenTask, TaskStore } from "./store.ts";

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
            waitMs: request.wait * 1_000,
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
interface Scope {
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
  if (accountId === "") throw invalid("accountId", "is required, as the account's id");
  if (own === undefined || own === accountId) return accountId;
  throw new GatewayError(ErrorCode.NOT_FOUND, "there is no such account");
}

/** The states that the caller wants to see; `undefined`: all. */
function statesOf({ status }: ListTasksRequest): readonly string[] | undefined {
  if (status === TaskStatus.UNSPECIFIED) return undefined;
  return taskStates.filter((state) => publicState(state).status === status);
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

/* Polls that wait for a change, and watches: few per account, woken by the database, without asking it in turns. */

/** Reads a task; `undefined`: the caller's account has none of that id. */
type ReadTask = () => Promise<SeenTask | undefined>;

/** A poll that may wait. */
interface Poll {
  readonly accountId: string;
  readonly taskId: string;
  readonly read: ReadTask;
  /** How long to wait, in milliseconds. */
  readonly waitMs: number;
  /** Whether the client knows this version of the task. Default: it knows the one that is read first. */
  readonly knows?: ((task: SeenTask) => boolean) | undefined;
  /** Aborted when the client leaves or the gateway stops: what is known then is the answer. */
  readonly signal: AbortSignal;
}

/** The places of those who wait. */
export class Parking {
  readonly #byAccount = new Map<string, number>();

  /** How many wait. */
  get count(): number {
    let count = 0;
    for (const each of this.#byAccount.values()) count += each;
    return count;
  }

  /** A place, until it is disposed; `undefined`: the account has no more of them. */
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

/** Answers a poll: at once where there is news, or where nothing can come any more. */
export async function poll(
  { accountId, taskId, read, waitMs, knows, signal }: Poll,
  { feed, parking }: { readonly feed: TaskFeed | undefined; readonly parking: Parking },
): Promise<SeenTask | undefined> {
  using place = waitMs > 0 && feed !== undefined ? parking.enter(accountId) : undefined;
  if (place === undefined || feed === undefined) return read();
  using changes = feed.subscribe(taskId);
  const endMs = performance.now() + waitMs;
  let task = await read();
  const first = task?.version;
  const isNews = (seen: SeenTask): boolean =>
    knows === undefined ? seen.version !== first : !knows(seen);
  while (task !== undefined && !isEnded(task.state) && !isNews(task)) {
    const leftMs = endMs - performance.now();
    if (leftMs <= 0 || signal.aborted) break;
    await changes.next(leftMs, signal);
    task = await read();
  }
  return task;
}

/** How long a watch goes without looking, in milliseconds: a change that nobody told of is seen then. */
const lookMs = 60_000;

/** Yields a task as it is, and after each change that is seen; ends with its end or the signal. */
async function* watch(
  { taskId, read, signal }: Pick<Poll, "taskId" | "read" | "signal">,
  feed: TaskFeed,
): AsyncGenerator<SeenTask> {
  using changes = feed.subscribe(taskId);
  for (let version = 0; !signal.aborted; await changes.next(lookMs, signal)) {
    const task = await read();
    if (task === undefined) return;
    if (task.version !== version) yield task;
    ({ version } = task);
    if (isEnded(task.state)) return;
  }
}
