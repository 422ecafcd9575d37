/** Takes the callbacks of vendors: each is a hint that there is news of one task, and nothing more. */
import type { Pool } from "pg";
import { answering } from "../core/database-lost.ts";
import { isUuid } from "../core/uuid.ts";
import type { VendorTasks } from "../vendor/task.ts";
import { hintTask } from "./vendor-notifications.ts";

/** What {@link createCallbacks} needs. */
export interface CallbacksOptions {
  readonly pool: Pick<Pool, "query">;
  /** How a vendor runs tasks; `undefined`: this process does not know it. */
  readonly tasksOf: (vendor: string) => VendorTasks | undefined;
  /** Called after a hint: there may be something to look at. Default: who works on tasks finds it by itself. */
  readonly onNews?: (() => void) | undefined;
}

/** The callbacks of vendors, by the tokens in their addresses. */
export interface Callbacks {
  /** Whether a task has this token. Asked before anything else is read. */
  isKnown(this: void, token: string): Promise<boolean>;
  /** Takes a callback. */
  take(this: void, token: string, body: Buffer): Promise<void>;
}

const vendorSql = "select vendor from task where attempt_token = $1";

/** Makes it. @throws GatewayError SERVICE_UNAVAILABLE from its functions where the database is away */
export function createCallbacks({ pool, tasksOf, onNews }: CallbacksOptions): Callbacks {
  const vendorOf = async (token: string): Promise<string | undefined> => {
    if (!isUuid(token)) return undefined;
    const { rows } = await answering(pool.query<{ vendor: string }>(vendorSql, [token]));
    return rows[0]?.vendor;
  };
  return {
    isKnown: async (token) => (await vendorOf(token)) !== undefined,
    async take(token, body) {
      const vendor = await vendorOf(token);
      if (vendor === undefined) return;
      const vendorTaskId = tasksOf(vendor)?.callbacks?.taskIdIn(body);
      const hint = vendorTaskId === undefined ? undefined : { vendorTaskId, isSure: false };
      await answering(hintTask(pool, token, hint));
      onNews?.();
    },
  };
}
