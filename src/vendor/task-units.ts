/** How long what is made is taken for: a model need not heed what is said of its length. Pure. */
import type { JsonObject } from "@bufbuild/protobuf";
import type { ModelConfig } from "../config/config.ts";
import type { TaskUnits, VendorTasks } from "./task.ts";

type Tasks = Pick<VendorTasks, "units" | "secondsUsual">;

/** What a task is charged by where nobody tells what was made. */
export function askedUnits(tasks: Tasks, params: JsonObject, model: ModelConfig): TaskUnits {
  return atLeast(tasks.units(params, model), model.minSeconds ?? 0);
}

/** What money is held for. */
export function mostUnits(tasks: Tasks, params: JsonObject, model: ModelConfig): TaskUnits {
  const { secondsUsual = 0 } = tasks;
  return atLeast(tasks.units(params, model), model.minSeconds ?? secondsUsual);
}

/** Units of at least so many seconds, where they are of seconds. */
export function atLeast(units: TaskUnits, least: number): TaskUnits {
  const { seconds } = units;
  return seconds === undefined ? units : { ...units, seconds: Math.max(seconds, least) };
}

/** What a film or a sound is charged for at the least, in seconds, that was asked for in a vendor's own form and of
 * which nobody tells how long it is: a length there may be any number. */
export const secondsLeast = 1;
