/** The search parameters of pages' addresses: filters, so that a view can be kept, sent and reloaded. */
import { parseUsd } from "./money.ts";
import { wallTime, zoneOf } from "./time.ts";

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

/** The names of {@link ranges}, shortest first. */
export const rangeNames = Object.keys(ranges) as readonly RangeName[];

/** A span that somebody has chosen, in place of a range. */
export interface SpanSearch {
  /** Where it begins: a day, or a minute of one, as clocks of the zone show it. */
  readonly from?: string;
  /** Where it ends. */
  readonly to?: string;
  /** The zone of all times of the page, an IANA name. Absent: the browser's. */
  readonly zone?: string;
}

/** Classes of HTTP statuses. */
export const statusClasses = ["2xx", "4xx", "5xx"] as const;

/** The endings of calls, in the order of the contract. */
export const endingNames = [
  "completed",
  "refused",
  "upstream_refused",
  "upstream_failed",
  "client_gone",
  "gateway_stopped",
  "gateway_failed",
  "out_of_balance",
  "gateway_lost",
  "cancelled",
  "key_disabled",
  "key_deleted",
  "key_expired",
] as const;

/** The filters of the call log. Absent: not filtered by it. The span counts up to `to`, and not where there is a range. */
export interface CallSearch extends SpanSearch {
  readonly range?: RangeName;
  readonly model?: string;
  readonly key?: string;
  readonly outcome?: "succeeded" | "failed";
  readonly code?: string;
  readonly status?: (typeof statusClasses)[number];
  readonly ending?: (typeof endingNames)[number];
  readonly vendor?: string;
  /** The least that a call has cost, in USD. */
  readonly cost?: string;
  readonly request?: string;
  /** The call whose details are open. */
  readonly call?: string;
}

/** Reads the filters of the call log; what makes no sense is dropped. */
export function readCallSearch(raw: Raw): CallSearch {
  return defined({
    range: oneOf(raw["range"], rangeNames),
    model: text(raw["model"]),
    key: text(raw["key"]),
    outcome: oneOf(raw["outcome"], ["succeeded", "failed"] as const),
    code: text(raw["code"]),
    ...readSpan(raw),
    status: oneOf(raw["status"], statusClasses),
    ending: oneOf(raw["ending"], endingNames),
    vendor: text(raw["vendor"]),
    cost: costText(raw["cost"]),
    request: text(raw["request"]),
    call: text(raw["call"]),
  });
}

function readSpan({ from, to, zone }: Raw): { [Name in keyof SpanSearch]: string | undefined } {
  return { from: wallTime(from), to: wallTime(to), zone: zoneOf(zone) };
}

function costText(value: unknown): string | undefined {
  const written = text(value);
  return written !== undefined && (parseUsd(written) ?? 0n) > 0n ? written : undefined;
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
    range: oneOf(raw["range"], rangeNames),
    kind: oneOf(raw["kind"], ledgerKinds),
  });
}

/** The metrics of usage, in the order of the page. */
export const metricNames = [
  "cost",
  "calls",
  "failed",
  "tokens",
  "input",
  "cached",
  "output",
  "images",
  "seconds",
] as const;

export type MetricName = (typeof metricNames)[number];

/** What the usage page shows. Absent: the first of each. The span goes by whole days, both of them included. */
export interface UsageSearch extends SpanSearch {
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
    range: oneOf(raw["range"], rangeNames),
    ...readDays(raw),
    metric: oneOf(raw["metric"], metricNames),
    group: oneOf(raw["group"], ["none", "model", "key"] as const),
    bucket: oneOf(raw["bucket"], ["hour", "day", "week", "month"] as const),
    model: text(raw["model"]),
    key: text(raw["key"]),
  });
}

/** Both days or none: a span with one end is no span. */
function readDays(raw: Raw): { [Name in keyof SpanSearch]: string | undefined } {
  const { from, to, zone } = readSpan(raw);
  const [first, last] = [from?.slice(0, 10), to?.slice(0, 10)];
  if (first === undefined || last === undefined || last < first) {
    return { from: undefined, to: undefined, zone };
  }
  return { from: first, to: last, zone };
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
function text(value: unknown): string | undefined {
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

/** The states of accounts that a list can be of. */
export const accountStates = ["active", "suspended"] as const;

/** Which accounts are listed. Absent: not searched by it. */
export interface AccountSearch {
  readonly q?: string;
  readonly state?: (typeof accountStates)[number];
}

/** Reads {@link AccountSearch}. */
export function readAccountSearch({ q, state }: Raw): AccountSearch {
  return defined({ q: text(q), state: oneOf(state, accountStates) });
}

/** The filters of the log of all calls. */
export interface AllCallSearch extends CallSearch {
  /** Only calls of this account. */
  readonly account?: string;
}

/** Reads {@link AllCallSearch}. */
export function readAllCallSearch(raw: Raw): AllCallSearch {
  return { ...readCallSearch(raw), ...defined({ account: text(raw["account"]) }) };
}

/** The filters of the deliveries of all accounts. */
export interface AllDeliverySearch extends DeliverySearch {
  /** Only deliveries of this account. */
  readonly account?: string;
}

/** Reads {@link AllDeliverySearch}. */
export function readAllDeliverySearch(raw: Raw): AllDeliverySearch {
  return { ...readDeliverySearch(raw), ...defined({ account: text(raw["account"]) }) };
}

/** The states of redeem codes, in the order of the contract. */
export const codeStates = ["open", "redeemed", "revoked", "expired"] as const;

/** Which redeem codes are listed. */
export interface CodeSearch {
  readonly state?: (typeof codeStates)[number];
}

/** Reads {@link CodeSearch}. */
export function readCodeSearch({ state }: Raw): CodeSearch {
  return defined({ state: oneOf(state, codeStates) });
}

/** The kinds of actions in the audit log: what stands before the dot of an action. */
export const auditKinds = [
  "account",
  "money",
  "redeem",
  "key",
  "webhook",
  "user",
  "session",
] as const;

/** Which entries of the audit log are listed. */
export interface AuditSearch {
  readonly kind?: (typeof auditKinds)[number];
  readonly account?: string;
}

/** Reads {@link AuditSearch}. */
export function readAuditSearch({ kind, account }: Raw): AuditSearch {
  return defined({ kind: oneOf(kind, auditKinds), account: text(account) });
}

/** Whether a search filters by anything. */
export function hasFilters(search: object): boolean {
  return Object.keys(search).length > 0;
}
