/**
 * The search parameters of pages' addresses: filters, so that a view can be kept, sent and
 * reloaded.
 */
import * as z from "zod/mini";
import { parseUsd } from "./money.ts";
import { wallTime, zoneOf } from "./time.ts";

type Raw = Readonly<Record<string, unknown>>;

type Shape = Readonly<Record<string, z.ZodMiniType>>;

/** The result of a schema. Absent members are no filters. */
type Read<Members extends Shape> = {
  readonly [Name in keyof Members]?: NonNullable<z.output<Members[Name]>>;
};

/**
 * The reader of a page's search. A member that has no valid value is dropped by itself, so an old
 * or mistyped address still opens its page.
 */
function searchReader<Members extends Shape>(shape: Members): (raw: Raw) => Read<Members> {
  const members = Object.entries(shape).map(([name, type]) => [
    name,
    // oxlint-disable-next-line promise/valid-params -- zod's function, no promise
    z.catch(z.optional(type), undefined),
  ]);
  const schema = z.object(Object.fromEntries(members) as Record<string, z.ZodMiniType>);
  return (raw) => defined(schema.parse(raw)) as Read<Members>;
}

/** The members of an object that have a value. */
export function defined<Value extends object>(
  value: Value,
): { [Name in keyof Value]?: Exclude<Value[Name], undefined> } {
  return Object.fromEntries(
    Object.entries(value).filter(([, each]) => each !== undefined),
  ) as never;
}

/** Whether a search filters by anything. */
export function hasFilters(search: object): boolean {
  return Object.keys(search).length > 0;
}

/** One of the known values. */
export function oneOf<const Value>(value: unknown, known: readonly Value[]): Value | undefined {
  return known.find((each) => each === value);
}

/** The router reads digits in an address as a number. */
const text = z
  .pipe(z.union([z.string(), z.number()]), z.transform(String))
  .check(z.refine((value) => value !== ""));

/** A value in the spelling that `read` returns; dropped if it returns none. */
function spelled(read: (value: unknown) => string | undefined) {
  return z.pipe(z.unknown(), z.transform(read));
}

/** An amount above zero, in USD. */
const amount = text.check(z.refine((value) => (parseUsd(value) ?? 0n) > 0n));

/** The time ranges of lists and charts, in milliseconds. */
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

const range = z.enum(rangeNames);

/** A time span that the user chooses, in place of a range. */
const span = {
  /** Its start: a day, or a minute of one, in local time of the zone. */
  from: spelled(wallTime),
  /** Its end, exclusive. */
  to: spelled(wallTime),
  /** The zone of all times of the page, an IANA name. The browser's by default. */
  zone: spelled(zoneOf),
};

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

const callMembers = {
  ...span,
  range,
  model: text,
  key: text,
  outcome: z.enum(["succeeded", "failed"]),
  code: text,
  status: z.enum(statusClasses),
  ending: z.enum(endingNames),
  vendor: text,
  /** The lowest cost, in USD. */
  cost: amount,
  request: text,
  /** The call whose details are open. */
  call: text,
};

/** Reads the filters of the call log. Where there is a span, the range does not count. */
export const readCallSearch = searchReader(callMembers);

export type CallSearch = ReturnType<typeof readCallSearch>;

/** Reads the filters of the log of all calls; with `account`, only the calls of that account. */
export const readAllCallSearch = searchReader({ ...callMembers, account: text });

export type AllCallSearch = ReturnType<typeof readAllCallSearch>;

/** The kinds of entries that a ledger can be filtered by; `moved`: everything but charges. */
export const ledgerKinds = [
  "moved",
  "charge",
  "top_up",
  "promo",
  "refund",
  "adjustment",
  "late_settlement",
] as const;

/** Reads the filters of a ledger. */
export const readLedgerSearch = searchReader({ range, kind: z.enum(ledgerKinds) });

export type LedgerSearch = ReturnType<typeof readLedgerSearch>;

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

const readUsage = searchReader({
  ...span,
  range,
  metric: z.enum(metricNames),
  group: z.enum(["none", "model", "key"]),
  bucket: z.enum(["hour", "day", "week", "month"]),
  model: text,
  key: text,
});

export type UsageSearch = ReturnType<typeof readUsage>;

/** Operators' revenue, costs and losses. */
export const figureNames = ["revenue", "vendorCost", "attempts", "loss", "margin"] as const;

export type FigureName = (typeof figureNames)[number];

/** Reads the search of the finance page. */
export const readFinanceSearch = searchReader({
  range,
  figure: z.enum(figureNames),
  group: z.enum(["model", "vendor", "account"]),
  bucket: z.enum(["hour", "day", "week", "month"]),
});

export type FinanceSearch = ReturnType<typeof readFinanceSearch>;

/**
 * Reads the search of the usage page. Its span has whole days, both ends included; a span with one
 * end is dropped.
 */
export function readUsageSearch(raw: Raw): UsageSearch {
  const { from, to, ...search } = readUsage(raw);
  const first = from?.slice(0, 10);
  const last = to?.slice(0, 10);
  if (first === undefined || last === undefined || last < first) return search;
  return { from: first, to: last, ...search };
}

/** The statuses of tasks, in the words of the wire. */
export const taskStatuses = ["progress", "completed", "failed", "cancelled"] as const;

/** Reads the filter of the list of tasks; `task`: the one whose details are open. */
export const readTaskSearch = searchReader({ status: z.enum(taskStatuses), task: text });

export type TaskSearch = ReturnType<typeof readTaskSearch>;

/** The states of deliveries. */
export const deliveryStates = [
  "pending",
  "sending",
  "delivered",
  "failed",
  "dropped",
  "parked",
] as const;

const deliveryMembers = {
  state: z.enum(deliveryStates),
  task: text,
  /** The endpoint: scheme, host and port. */
  origin: text,
  /** The delivery whose details are open. */
  delivery: text,
};

/** Reads the filters of the list of deliveries. */
export const readDeliverySearch = searchReader(deliveryMembers);

export type DeliverySearch = ReturnType<typeof readDeliverySearch>;

/** Reads the filters of the deliveries of all accounts; with `account`, only of that account. */
export const readAllDeliverySearch = searchReader({ ...deliveryMembers, account: text });

export type AllDeliverySearch = ReturnType<typeof readAllDeliverySearch>;

/** Reads the selected model, or the model whose details are open. */
export const readModelSearch = searchReader({ model: text });

/** Reads the search of the list of keys; `create`: opens the form for a new key. */
export const readKeySearch = searchReader({ create: z.literal(true) });

/** Reads which accounts are listed; `q`: a part of the name, or an account id. */
export const readAccountSearch = searchReader({
  q: text,
  state: z.enum(["active", "suspended"]),
});

export type AccountSearch = ReturnType<typeof readAccountSearch>;

/** The states of redeem codes, in the order of the contract. */
export const codeStates = ["open", "redeemed", "revoked", "expired"] as const;

/** Reads which redeem codes are listed. */
export const readCodeSearch = searchReader({ state: z.enum(codeStates) });

/** The kinds of actions in the audit log: the part before the dot of an action. */
export const auditKinds = [
  "account",
  "money",
  "redeem",
  "key",
  "webhook",
  "user",
  "session",
  "config",
] as const;

/** Reads which entries of the audit log are listed. */
export const readAuditSearch = searchReader({ kind: z.enum(auditKinds), account: text });

export type AuditSearch = ReturnType<typeof readAuditSearch>;

/** The views of the configuration. */
export const configurationTabs = [
  "overview",
  "vendors",
  "models",
  "limits",
  "document",
  "revisions",
] as const;

/** Reads which view of the configuration is open, and which vendor, model or revision in it. */
export const readConfigurationSearch = searchReader({
  tab: z.enum(configurationTabs),
  entry: text,
});

export type ConfigurationSearch = ReturnType<typeof readConfigurationSearch>;

/** Reads the destination after the sign-in: a path of the console, never another site. */
export const readNext = searchReader({
  next: z.string().check(z.regex(/^\/(?!\/|\\)/)),
});
