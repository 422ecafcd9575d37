/**
 * Rate limits of codes. Each send is a row; a limit is reached while the n-th newest row is young
 * enough. SQL: all limits are one statement.
 */
import type { PoolClient } from "pg";
import type { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { codeSendsMax, codeStrangersShare } from "../../core/limits.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";

/** Recipient and purpose of a send. */
interface Sending {
  readonly phone: string;
  /** The calling code of the number's country. */
  readonly country: string;
  readonly ipAddress: string;
  /** `undefined` for unknown users. */
  readonly accountId: string | undefined;
  /** The purpose, a CodePurpose. */
  readonly purpose: number;
  /** As in CodeRequest. */
  readonly isKnown: boolean;
}

/**
 * The scope of a limit. `all` is the operator's limit; `strangers` is the part of it for browsers
 * without an earlier sign-in.
 */
export type LimitScope = keyof typeof codeSendsMax | "strangers" | "all";

/** A reached limit. */
interface ReachedLimit {
  readonly scope: LimitScope;
  /** Time until it allows a send again. */
  readonly waitMs: number;
}

const dayMs = 24 * 60 * 60_000;

/** Purposes other than actions. */
export const CodePurpose = { SIGN_IN: 1, SET_PHONE: 2 } as const;

/** First purpose number of actions. Numbers are stored and never change. */
const firstAction = 10;

/** The purpose number of an action. */
export function purposeOf(action: CodeAction): number {
  return firstAction + action;
}

/**
 * Strangers' sends count against strangers only: otherwise a stranger could keep owners from their
 * codes (R-KEY-5).
 */
const amongStrangers = "not is_known and not $5";

/**
 * The SQL condition for rows that count; the parameters are those of {@link reachedLimit}. Codes
 * for known browsers and for sessions need no limit of a country or an address: their user has
 * proven the number, which has separate limits.
 */
const countedBy: Readonly<Record<LimitScope, string>> = {
  phone: `phone = $1 and is_known = $5 and (purpose < ${firstAction}) = $6`,
  country: `country = $2 and ${amongStrangers}`,
  address: `ip_address = $3 and ${amongStrangers}`,
  account: "account_id = $4",
  strangers: amongStrangers,
  all: "true",
};

/** The n-th newest row of a window; it exists while the limit is reached. */
function windowSql(scope: LimitScope, max: string, withinMs: number): string {
  const interval = `interval '${withinMs} ms'`;
  return `(select '${scope}' as scope,
      extract(epoch from create_time + ${interval} - now())::float8 * 1000 as wait_ms
    from one_time_code where ${countedBy[scope]} and create_time > now() - ${interval}
    order by create_time desc offset ${max} - 1 limit 1)`;
}

const windows = (Object.keys(codeSendsMax) as (keyof typeof codeSendsMax)[]).flatMap((scope) =>
  codeSendsMax[scope].map(({ max, withinMs }) => windowSql(scope, String(max), withinMs)),
);

const reachedSql = `
  ${[...windows, windowSql("strangers", "$7::int", dayMs), windowSql("all", "$8::int", dayMs)].join("\n  union all ")}
  order by wait_ms desc, scope limit 1`;

/**
 * The reached limit with the longest wait; `undefined` for none. The caller holds the lock on
 * sends.
 */
export async function reachedLimit(
  client: PoolClient,
  sending: Sending,
  dailyMax: number,
): Promise<ReachedLimit | undefined> {
  const { phone, country, ipAddress, accountId, isKnown, purpose } = sending;
  const values = [
    ...[phone, country, addressGroup(ipAddress), accountId ?? null],
    ...[isKnown, purpose < firstAction],
    ...[Math.ceil(dailyMax * codeStrangersShare), dailyMax],
  ];
  const { rows } = await client.query<{ scope: LimitScope; wait_ms: number }>(reachedSql, values);
  const [row] = rows;
  return row && { scope: row.scope, waitMs: row.wait_ms };
}

/**
 * The group of an IP address: IPv6 addresses share their first 64 bits, since a client owns that
 * whole range.
 */
export function addressGroup(ipAddress: string): string {
  const plain = ipAddress.replace(/^::ffff:(?=\d+\.)/, "");
  if (!plain.includes(":")) return plain;
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const after = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - after.length);
  const all = [...groups, ...Array.from({ length: zeros }, () => "0"), ...after];
  return `${all.slice(0, 4).join(":")}::/64`;
}

/** The error for a reached limit. */
export function tooManyCodes({ scope, waitMs }: ReachedLimit): GatewayError {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000));
  const text = `${texts[scope]} ${duration(retryAfterSeconds)}`;
  return new GatewayError(ErrorCode.RATE_LIMIT_EXCEEDED, text, { retryAfterSeconds });
}

const orKnown = "use a browser that you have signed in with before, or try again in";

const texts: Readonly<Record<LimitScope, string>> = {
  phone: "too many codes were sent to this number: try again in",
  account: "too many codes were sent for this account: try again in",
  address: `too many codes were requested from this address: ${orKnown}`,
  country: `too many codes were sent to numbers of this country: ${orKnown}`,
  strangers: `the gateway sends no more codes to new browsers today: ${orKnown}`,
  all: "the gateway sends no more codes today: try again in",
};

/** A duration for people. */
export function duration(seconds: number): string {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.ceil(seconds / 60)} min` : `${Math.ceil(seconds / 3_600)} h`;
}
