/** Which limits a call is held to, and what its caller is told of them. Pure. */
import type { LimitDefaults, RateLimits } from "../../config/config.ts";
import type { KeyCaller } from "../../core/caller.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { LimitRefusal, LimitSubject, Ticket } from "./limiter.ts";

/** The limits of a call; `undefined`: there are none, as for nearly every installation. */
export function subjectsOf(
  { keyId, accountId, keyRates, accountRates }: KeyCaller,
  model: string,
  defaults: LimitDefaults,
): readonly LimitSubject[] | undefined {
  const key = keyRates ?? defaults.key;
  const account = accountRates ?? defaults.account;
  if (key === undefined && account === undefined && defaults.model === undefined) return undefined;
  return [
    ...(key === undefined ? [] : [{ name: `k${keyId}`, kind: "key", limits: key } as const]),
    ...(account === undefined
      ? []
      : [{ name: `a${accountId}`, kind: "account", limits: account } as const]),
    ...(defaults.model === undefined
      ? []
      : [{ name: `m${model}`, kind: "model", limits: defaults.model } as const]),
  ];
}

const owners = { key: "API key", account: "account", model: "model" } as const;

const units = { requests: "requests per minute", tokens: "tokens per minute" } as const;

/** 429 for a refused request: it names the limit, and says when to come back. @param tokens what the request may use */
export function rateLimited(refusal: LimitRefusal, tokens: number): GatewayError {
  const { subject, reason, retryMs } = refusal;
  const limit = limitOf(subject.limits, reason) ?? 0;
  const owner = owners[subject.kind];
  const isTooLarge = reason === "tokens" && tokens > limit;
  const what =
    reason === "concurrency"
      ? `the ${owner} already runs the ${limit} calls that it may run at once`
      : `the ${owner} may use ${limit} ${units[reason]}`;
  const remedy = isTooLarge
    ? `this request alone may use ${tokens}: ask for fewer (max_tokens)`
    : "retry after the time in the retry-after header";
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `Rate limit exceeded: ${what}; ${remedy}`,
    {
      retryAfterSeconds: Math.max(1, Math.ceil(retryMs / 1_000)),
      metadata: { limit_owner: subject.kind, limit_type: reason, limit: String(limit) },
      headers: limitHeaders([{ limits: subject.limits, used: refusal.used }], retryMs),
    },
  );
}

function limitOf(limits: RateLimits, reason: LimitRefusal["reason"]): number | undefined {
  if (reason === "requests") return limits.rpm;
  return reason === "tokens" ? limits.tpm : limits.concurrency;
}

/** The headers of an admitted call: of each kind of limit the one with the least left. */
export function ticketHeaders({ subjects, used }: Ticket): Record<string, string> {
  const none = { requests: 0, tokens: 0 };
  const all = subjects.map(({ limits }, index) => ({ limits, used: used[index] ?? none }));
  return limitHeaders(all, windowMs);
}

/** When all of what was used has left the window, in milliseconds. */
const windowMs = 65_000;

interface Limited {
  readonly limits: RateLimits;
  readonly used: { readonly requests: number; readonly tokens: number };
}

/** In OpenAI's form, and in Anthropic's. @param resetMs when the limit gives room again */
function limitHeaders(all: readonly Limited[], resetMs: number): Record<string, string> {
  const headers: Record<string, string> = {};
  const seconds = Math.max(1, Math.ceil(resetMs / 1_000));
  const resetTime = new Date(Date.now() + seconds * 1_000).toISOString();
  for (const [unit, key] of [
    ["requests", "rpm"],
    ["tokens", "tpm"],
  ] as const) {
    const [least] = all
      .flatMap(({ limits, used }) => {
        const limit = limits[key];
        return limit === undefined ? [] : [{ limit, left: Math.max(0, limit - used[unit]) }];
      })
      .toSorted((a, b) => a.left - b.left);
    if (least === undefined) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(least.limit);
    headers[`x-ratelimit-remaining-${unit}`] = String(least.left);
    headers[`x-ratelimit-reset-${unit}`] = `${seconds}s`;
    headers[`anthropic-ratelimit-${unit}-limit`] = String(least.limit);
    headers[`anthropic-ratelimit-${unit}-remaining`] = String(least.left);
    headers[`anthropic-ratelimit-${unit}-reset`] = resetTime;
  }
  return headers;
}
