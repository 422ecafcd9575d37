/** What an action changed, in a line. */
import type { AuditEntry } from "../../../gen/uas/operator/v1/operator_pb.ts";

type Facts = Readonly<Record<string, unknown>>;

/** A value of an entry as text: words as they are, anything else as JSON. */
export function factText(value: unknown): string {
  if (isEmpty(value)) return "—";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The names that stand in an entry, before or after, in their order. */
export function factNames({ before, after }: Pick<AuditEntry, "before" | "after">): string[] {
  return [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
}

/** `name Alice → Bob, discountBp 0 → 500`; where nothing was before, or is after, what was or is. */
export function changeText({ before, after }: Pick<AuditEntry, "before" | "after">): string {
  const isChange = before !== undefined && after !== undefined;
  const [old, now]: readonly [Facts, Facts] = [before ?? {}, after ?? {}];
  return factNames({ before, after })
    .filter((name) => !isEmpty(old[name]) || !isEmpty(now[name]))
    .map((name) =>
      isChange
        ? `${name} ${factText(old[name])} → ${factText(now[name])}`
        : `${name} ${factText(now[name] ?? old[name])}`,
    )
    .join(", ");
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
