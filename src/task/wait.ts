/** Polls that wait for a change, and watches: few per account, woken by the database, without asking it in turns. */
import { parkedPollsMax } from "../config/task-limits.ts";
import type { TaskFeed } from "./feed.ts";
import { isEnded } from "./state.ts";
import type { SeenTask } from "./store.ts";

/** Reads a task; `undefined`: the caller's account has none of that id. */
export type ReadTask = () => Promise<SeenTask | undefined>;

/** A poll that may wait. */
export interface Poll {
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
export async function* watch(
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
