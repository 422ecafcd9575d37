/** What the webhook of a job has beside that of every task: how its vendor speaks of it (R-HOOK-7). */
import type { PoolClient } from "pg";
import { nativePayloadBytesMax } from "../config/limits.ts";
import type { TaskRow } from "../task/task-row.ts";
import { tellTask } from "../task/tell.ts";
import type { NativeContext, NativeVendor } from "./context.ts";
import { customerBody } from "./send.ts";
import { jobOfTask } from "./store.ts";

/** What telling needs. */
export interface TellingOptions extends Pick<NativeContext, "publicUrl" | "links"> {
  /** By name. */
  readonly vendors: ReadonlyMap<string, NativeVendor>;
}

/** Tells of tasks: of those in our own form as ever. */
export function createTell(options: TellingOptions) {
  return async (transaction: PoolClient, task: TaskRow): Promise<void> => {
    if (task.callback_url === null) return;
    if (task.path === null) return tellTask(transaction, task);
    const job = await jobOfTask(transaction, task.id);
    if (job === undefined) return tellTask(transaction, task);
    if (task.finish_time === null && !job.wants_progress) return;
    const at = options.vendors.get(job.vendor);
    const { body, vendor, vendor_id: vendorId, status } = job;
    const payload =
      at &&
      body &&
      customerBody({ at, accountId: task.account_id }, body, options).toString("utf8");
    const isShort = payload && Buffer.byteLength(payload) <= nativePayloadBytesMax;
    await tellTask(transaction, task, {
      callbackId: job.callback_id ?? vendorId,
      extra: {
        vendor,
        vendor_task_id: vendorId,
        vendor_status: status,
        ...(isShort && { vendor_payload: payload }),
      },
    });
  };
}
