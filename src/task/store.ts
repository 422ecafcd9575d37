/** Reads tasks. */
import type { Pool } from "pg";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import type { Page } from "../core/pagination.ts";
import { isUuid, maxUuid } from "../core/uuid.ts";
import { summaryColumns, taskColumns, type TaskRow, type WholeTask } from "./task-row.ts";

/** A task without its parameters, which can be long. */
export type TaskSummary = Omit<TaskRow, "params">;

const sql = {
  find: `select ${summaryColumns} from task where id = $1 and ($2::uuid is null or account_id = $2)`,
  findWhole: `select ${taskColumns} from task where id = $1
    and ($2::uuid is null or account_id = $2)`,
  findByRequest: `select ${summaryColumns} from task where request_id = $1 order by id desc limit 1`,
  list: `select ${summaryColumns} from task where id < $1 and account_id = $3
    and ($4::text[] is null or state = any($4)) order by id desc limit $2`,
} as const;

/** Reads tasks from the database. */
export interface TaskStore {
  /**
   * A task; undefined if it does not exist, or belongs to another account.
   *
   * @param accountId any account by default
   */
  find(taskId: string, accountId?: string): Promise<TaskSummary | undefined>;
  /** The same with its parameters. */
  findWhole(taskId: string, accountId: string | undefined): Promise<WholeTask | undefined>;
  /** The newest task by the request id of its submit. */
  findByRequest(requestId: string): Promise<TaskSummary | undefined>;
  /**
   * One more than the page's limit, newest first.
   *
   * @param states all by default
   */
  list(page: Page, accountId: string, states?: readonly string[]): Promise<readonly TaskSummary[]>;
}

/** Creates the task store. */
export function createTaskStore(pool: Pick<Pool, "query">): TaskStore {
  const query = async (text: string, values: unknown[]): Promise<readonly TaskSummary[]> =>
    (await mapDatabaseLoss(pool.query<TaskSummary>(text, values))).rows;
  return {
    // The same query for an unknown task and for another account's: neither answer nor timing
    // reveals the difference.
    find: async (taskId, accountId) =>
      isUuid(taskId) ? (await query(sql.find, [taskId, accountId ?? null]))[0] : undefined,
    findWhole: async (taskId, accountId) =>
      isUuid(taskId)
        ? (await mapDatabaseLoss(pool.query<WholeTask>(sql.findWhole, [taskId, accountId ?? null])))
            .rows[0]
        : undefined,
    findByRequest: async (requestId) =>
      requestId.includes("\0") ? undefined : (await query(sql.findByRequest, [requestId]))[0],
    list: (page, accountId, states) =>
      query(sql.list, [page.after ?? maxUuid, page.limit + 1, accountId, states ?? null]),
  };
}
