/** Reads tasks. */
import type { Pool } from "pg";
import { answering } from "../core/database-lost.ts";
import type { Page } from "../core/pagination.ts";
import { isUuid } from "../core/uuid.ts";
import { seenColumns, taskColumns, type TaskRow, type WholeTask } from "./task-row.ts";

/** A task without what was asked for, which can be long. */
export type SeenTask = Omit<TaskRow, "params">;

/** Every id is below it: the position before the first page. */
const topId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

const sql = {
  find: `select ${seenColumns} from task where id = $1 and ($2::uuid is null or account_id = $2)`,
  findWhole: `select ${taskColumns} from task where id = $1
    and ($2::uuid is null or account_id = $2)`,
  findByRequest: `select ${seenColumns} from task where request_id = $1 order by id desc limit 1`,
  list: `select ${seenColumns} from task where id < $1 and account_id = $3
    and ($4::text[] is null or state = any($4)) order by id desc limit $2`,
} as const;

/** The tasks of the database. */
export interface TaskStore {
  /** A task; `undefined`: there is none, or it is of another account. @param accountId default: any */
  find(taskId: string, accountId?: string): Promise<SeenTask | undefined>;
  /** The same, with what was asked for. */
  findWhole(taskId: string, accountId: string | undefined): Promise<WholeTask | undefined>;
  /** The newest task by the request id of its submit. */
  findByRequest(requestId: string): Promise<SeenTask | undefined>;
  /** One more than the page's limit, newest first. @param states default: all */
  list(page: Page, accountId: string, states?: readonly string[]): Promise<readonly SeenTask[]>;
}

/** Makes it. */
export function createTaskStore(pool: Pick<Pool, "query">): TaskStore {
  const query = async (text: string, values: unknown[]): Promise<readonly SeenTask[]> =>
    (await answering(pool.query<SeenTask>(text, values))).rows;
  return {
    // The same question for a task of nobody and one of somebody else: neither answer nor time tells them apart.
    find: async (taskId, accountId) =>
      isUuid(taskId) ? (await query(sql.find, [taskId, accountId ?? null]))[0] : undefined,
    findWhole: async (taskId, accountId) =>
      isUuid(taskId)
        ? (await answering(pool.query<WholeTask>(sql.findWhole, [taskId, accountId ?? null])))
            .rows[0]
        : undefined,
    findByRequest: async (requestId) =>
      requestId.includes("\0") ? undefined : (await query(sql.findByRequest, [requestId]))[0],
    list: (page, accountId, states) =>
      query(sql.list, [page.after ?? topId, page.limit + 1, accountId, states ?? null]),
  };
}
