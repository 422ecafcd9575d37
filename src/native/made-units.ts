/** What is charged by beside tokens. Pure. */
import type { UnitUsage } from "../billing/price.ts";
import type { NativeMeter } from "../vendor/native.ts";

/** What a reply has made so far; `undefined`: nothing but text. */
export function madeUnits({ images, seconds = 0 }: NativeMeter): UnitUsage | undefined {
  const units = unitsOf({ images, seconds });
  return Object.keys(units).length === 0 ? undefined : units;
}

/** Those that are not nothing. */
export function unitsOf({ images, seconds }: Required<UnitUsage>): UnitUsage {
  return { ...(images ? { images } : {}), ...(seconds ? { seconds } : {}) };
}
