/** What stands behind the `?` of pages' addresses: filters, so that a view can be kept, sent and reloaded. */
import { type MetricName, metricNames } from "./usage/metric.ts";

/** Where to go after the sign-in. */
export interface NextSearch {
  readonly next?: string;
}

type Raw = Readonly<Record<string, unknown>>;

/** Reads a page's search for {@link NextSearch}; anything that is no path of the console is dropped. */
export function readNext({ next }: Raw): NextSearch {
  return typeof next === "string" && /^\/(?!\/|\\)/.test(next) ? { next } : {};
}

/** What the list of keys is opened with. */
export interface KeySearch {
  /** Whether the form for a new key is open. */
  readonly create?: true;
}

/** Reads {@link KeySearch}. */
export function readKeySearch({ create }: Raw): KeySearch {
  return create === true ? { create } : {};
}

/** The ranges that lists and charts offer, in milliseconds. */
export const ranges = {
  "15m": 15 * 60_000,
  "1h": 3_600_000,
  "24h": 86_400_000,
  "7d": 7 * 86_400_000,
  "30d": 30 * 86_400_000,
  "90d": 90 * 86_400_000,
} as const;

export type RangeName = keyof typeof ranges;

/** The filters of the call log. Absent: not filtered by it. */
export interface CallSearch {
  readonly range?: RangeName;
  readonly model?: string;
  readonly key?: string;
  readonly outcome?: "succeeded" | "failed";
  readonly code?: string;
  readonly request?: string;
  /** The call whose details are open. */
  readonly call?: string;
}

/** Reads the filters of the call log; what makes no sense is dropped. */
export function readCallSearch(raw: Raw): CallSearch {
  return defined({
    range: oneOf(raw["range"], Object.keys(ranges) as RangeName[]),
    model: text(raw["model"]),
    key: text(raw["key"]),
    outcome: oneOf(raw["outcome"], ["succeeded", "failed"] as const),
    code: text(raw["code"]),
    request: text(raw["request"]),
    call: text(raw["call"]),
  });
}

/** The kinds of movements that a ledger can be narrowed to; `moved`: everything but charges. */
export const ledgerKinds = [
  "moved",
  "charge",
  "top_up",
  "promo",
  "refund",
  "adjustment",
  "late_settlement",
] as const;

/** The filters of a ledger. Absent: not filtered by it. */
export interface LedgerSearch {
  readonly range?: RangeName;
  readonly kind?: (typeof ledgerKinds)[number];
}

/** Reads {@link LedgerSearch}; what makes no sense is dropped. */
export function readLedgerSearch(raw: Raw): LedgerSearch {
  return defined({
    range: oneOf(raw["range"], Object.keys(ranges) as RangeName[]),
    kind: oneOf(raw["kind"], ledgerKinds),
  });
}

/** What the usage page shows. Absent: the first of each. */
export interface UsageSearch {
  readonly range?: RangeName;
  readonly metric?: MetricName;
  readonly group?: "none" | "model" | "key";
  readonly bucket?: "hour" | "day" | "week" | "month";
  readonly model?: string;
  readonly key?: string;
}

/** Reads {@link UsageSearch}; what makes no sense is dropped. */
export function readUsageSearch(raw: Raw): UsageSearch {
  return defined({
    range: oneOf(raw["range"], Object.keys(ranges) as RangeName[]),
    metric: oneOf(raw["metric"], metricNames),
    group: oneOf(raw["group"], ["none", "model", "key"] as const),
    bucket: oneOf(raw["bucket"], ["hour", "day", "week", "month"] as const),
    model: text(raw["model"]),
    key: text(raw["key"]),
  });
}

/** The statuses of tasks, by their documented words. */
export const taskStatuses = ["progress", "completed", "failed", "cancelled"] as const;

/** The filter of the list of tasks. */
export interface TaskSearch {
  readonly status?: (typeof taskStatuses)[number];
  /** The task whose details are open. */
  readonly task?: string;
}

/** Reads {@link TaskSearch}. */
export function readTaskSearch(raw: Raw): TaskSearch {
  return defined({ status: oneOf(raw["status"], taskStatuses), task: text(raw["task"]) });
}

/** The states of deliveries. */
export const deliveryStates = [
  "pending",
  "sending",
  "delivered",
  "failed",
  "dropped",
  "parked",
] as const;

/** The filter of the list of deliveries. */
export interface DeliverySearch {
  readonly state?: (typeof deliveryStates)[number];
  readonly task?: string;
  /** The receiver: scheme, host and port. */
  readonly origin?: string;
  /** The delivery whose details are open. */
  readonly delivery?: string;
}

/** Reads {@link DeliverySearch}. */
export function readDeliverySearch(raw: Raw): DeliverySearch {
  return defined({
    state: oneOf(raw["state"], deliveryStates),
    task: text(raw["task"]),
    origin: text(raw["origin"]),
    delivery: text(raw["delivery"]),
  });
}

/** What the list of models shows. */
export interface ModelSearch {
  /** The model whose details are open. */
  readonly model?: string;
}

/** Reads {@link ModelSearch}. */
export function readModelSearch(raw: Raw): ModelSearch {
  return defined({ model: text(raw["model"]) });
}

/** A text that says something. */
export function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** A value that is one of those known. */
export function oneOf<const Value>(value: unknown, known: readonly Value[]): Value | undefined {
  return known.find((each) => each === value);
}

/** The members that have a value. */
export function defined<Value extends object>(
  value: Value,
): { [Name in keyof Value]?: Exclude<Value[Name], undefined> } {
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== undefined),
  ) as never;
}
