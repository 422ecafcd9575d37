/** Receives vendors' callbacks. Each only notifies that a task may have changed; the vendor is then polled. */
import type { Pool } from "pg";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { isUuid } from "../core/uuid.ts";
import type { VendorTasks } from "../vendor/task.ts";
import { recordNotification } from "./vendor-notifications.ts";

/** Options of {@link createCallbacks}. */
export interface CallbacksOptions {
  readonly pool: Pick<Pool, "query">;
  /** How a vendor runs tasks; `undefined`: this process does not know it. */
  readonly tasksOf: (vendor: string) => VendorTasks | undefined;
  /** Called after a notification: a task may be due. Default: nothing; workers find it with their next scan. */
  readonly onNews?: (() => void) | undefined;
}

/** The callbacks of vendors, by the tokens in their addresses. */
export interface Callbacks {
  /** Whether a task has this token. Checked before the body is read. */
  isKnown(this: void, token: string): Promise<boolean>;
  /** Records the notification of a callback. */
  take(this: void, token: string, body: Buffer): Promise<void>;
}

const vendorSql = "select vendor from task where attempt_token = $1";

/** Creates the callbacks. @throws GatewayError SERVICE_UNAVAILABLE from its functions where the database is away */
export function createCallbacks({ pool, tasksOf, onNews }: CallbacksOptions): Callbacks {
  const vendorOf = async (token: string): Promise<string | undefined> => {
    if (!isUuid(token)) return undefined;
    const { rows } = await mapDatabaseLoss(pool.query<{ vendor: string }>(vendorSql, [token]));
    return rows[0]?.vendor;
  };
  return {
    isKnown: async (token) => (await vendorOf(token)) !== undefined,
    async take(token, body) {
      const vendor = await vendorOf(token);
      if (vendor === undefined) return;
      const vendorTaskId = tasksOf(vendor)?.callbacks?.taskIdIn(body);
      const hint = vendorTaskId === undefined ? undefined : { vendorTaskId, isSure: false };
      await mapDatabaseLoss(recordNotification(pool, token, hint));
      onNews?.();
    },
  };
}
