/** Where a task goes next. */
import type { RouteConfig } from "../config/config.ts";
import type { TaskRow } from "./task-row.ts";
import type { TaskWork } from "./task-work.ts";

/** The route of its model after the one that it has; `undefined`: there is none. */
export function nextRoute(work: TaskWork, task: TaskRow): RouteConfig | undefined {
  const routes = work.options.models.get(task.model)?.routes ?? [];
  const at = routes.findIndex((r) => r.vendor === task.vendor && r.model === task.vendor_model);
  const isKnown = ({ vendor, model }: RouteConfig): boolean =>
    work.vendorOf({ ...task, vendor, vendor_model: model }) !== undefined;
  return at < 0 ? undefined : routes.slice(at + 1).find(isKnown);
}
