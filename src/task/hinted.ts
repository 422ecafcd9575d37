/** What a vendor's callback comes to. */
import type { TaskWork, Work } from "./task-work.ts";
import { askHint } from "./hints.ts";
import type { WorkerVendor } from "./worker-options.ts";

/** The vendor's own name of the task; nothing, or nothing that is known by now. */
export async function followHint(
  tools: TaskWork,
  { task, signal }: Work,
  { tasks }: WorkerVendor,
): Promise<{ readonly vendorTaskId: string } | { readonly isOpen: boolean }> {
  try {
    const vendorTaskId = await askHint(tasks, task, signal);
    return vendorTaskId === undefined ? { isOpen: false } : { vendorTaskId };
  } catch (error) {
    if (!signal.aborted) {
      const { id: taskId, vendor } = task;
      tools.warn("a callback could not be checked", { taskId, vendor, err: error });
    }
    return { isOpen: true };
  }
}
