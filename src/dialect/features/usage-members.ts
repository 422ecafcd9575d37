/**
 * Known members of a usage. An unknown figure may be billed by the vendor in addition, so it raises
 * an alarm (R-TXT-13). Pure.
 */
import { isRecord, type JsonRecord } from "../../wire/json/value.ts";

/** Known members of an object. Nested objects have a separate list; `true` accepts any content. */
export interface KnownMembers {
  readonly [name: string]: true | KnownMembers;
}

/** Lists members whose contents are known too. */
export function knownNames(...names: readonly string[]): KnownMembers {
  return Object.fromEntries(names.map((name) => [name, true as const]));
}

/**
 * Durations, rates and amounts of money: vendors add them freely, and what they measure is counted
 * elsewhere.
 */
const isMeasure = /(?:^|_)(?:time|ms|latency|ttft|rate|per_sec|per_second|cost|costs|price)(?:$|_)/;

/** More names than a vendor can mean. */
const namesMax = 8;

/**
 * Finds figures above 0 that are not known.
 *
 * @returns their paths, joined by commas; undefined means none, as in nearly every reply
 */
export function unknownFigures(usage: JsonRecord, members: KnownMembers): string | undefined {
  const found: string[] = [];
  collect(usage, { members, path: "", found });
  return found.length === 0 ? undefined : found.slice(0, namesMax).join(",");
}

interface Search {
  readonly members: KnownMembers;
  readonly path: string;
  readonly found: string[];
}

function collect(usage: JsonRecord, { members, path, found }: Search): void {
  for (const name in usage) {
    const value = usage[name];
    const of = Object.hasOwn(members, name) ? members[name] : undefined;
    if (of === true || value == null || typeof value === "boolean") continue;
    const where = path + name.slice(0, 64);
    if (of !== undefined) {
      if (isRecord(value)) collect(value, { members: of, path: `${where}.`, found });
      continue;
    }
    if (!isMeasure.test(name) && hasFigure(value)) found.push(where);
  }
}

/** Whether a value is a count above 0, or contains one. Some vendors write counts as texts. */
function hasFigure(value: unknown): boolean {
  if (typeof value === "number") return value > 0;
  if (typeof value === "string") return /^0*[1-9]\d*$/.test(value);
  return typeof value === "object" && value !== null && Object.values(value).some(hasFigure);
}
