/** Who runs a task: the vendor's own way with tasks, or for a text its way with text generation. */
import { ModelType } from "../../gen/uas/inference/v1/model_pb.ts";
import type { VendorTasks } from "../vendor/task.ts";
import { textUnits } from "./schema/text-units.ts";
import type { TaskRow } from "./task-row.ts";
import type { WorkerOptions, WorkerVendor } from "./worker-options.ts";

/** What of a task says who runs it. */
export type TaskPlace = Pick<TaskRow, "type" | "model" | "vendor" | "vendor_model" | "path">;

/** Who runs a task; `undefined`: nobody whom this process knows. */
export function vendorFor(
  options: Pick<WorkerOptions, "vendors" | "natives" | "models" | "text">,
  { type, model: key, vendor, vendor_model: name, path }: TaskPlace,
): WorkerVendor | undefined {
  if (path !== null) return options.natives?.get(vendor);
  if (type !== ModelType.TEXT) return options.vendors.get(vendor);
  const known = options.text?.vendors.get(vendor);
  const model = options.models.get(key);
  const route = model?.routes.find((each) => each.vendor === vendor && each.model === name);
  const run = options.text?.run;
  if (!known || !run || !model || !route) return undefined;
  const tasks: VendorTasks = {
    // Vendors of text know no repetitions and list nothing: a lost answer stays lost.
    resubmit: "blind",
    types: textTypes,
    canCancel: true,
    submit: ({ params, signal }) => run({ model, route, params, signal }),
    units: textUnits,
  };
  return { tasks, maxInFlight: known.maxInFlight, baseUrl: "" };
}

const textTypes: ReadonlySet<ModelType> = new Set([ModelType.TEXT]);
