/**
 * Holds a call to its limits of requests, tokens and concurrency (R-LIM-1), and writes the headers
 * that report them.
 */
import type { LimitDefaults, RateLimits } from "../../config/config.ts";
import type { KeyCaller } from "../../core/caller.ts";
import type { Clock } from "../../core/clock.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { LimitRefusal, LimitSubject, Ticket } from "../../limits/limiter.ts";
import type { Chunk } from "./adapter.ts";
import type { Call } from "./call.ts";
import type { PipelineDeps } from "./context.ts";
import type { Quoted } from "./quote.ts";

/** The verdict of a call's limits. */
export interface Limiting {
  /**
   * Whether the verdict must be known before money is held. It need not be known far below the
   * limits: a call that is nevertheless refused returns its hold.
   */
  readonly isFirst: boolean;
  /** Rejects if the call is refused. */
  readonly admitted: Promise<void>;
}

/**
 * Admits a call within its limits. Its tokens are reserved at their upper bound until {@link
 * endLimits}.
 *
 * @returns `undefined` if the call has no limits. `admitted` rejects with RATE_LIMIT_EXCEEDED, or
 * with SERVICE_UNAVAILABLE if the limits cannot be checked
 */
export function limit<Out extends Chunk>(quoted: Quoted<Out>): Limiting | undefined {
  const { call, context, model, tokens, planFor, deps } = quoted;
  const subjects = subjectsOf(context.caller, model.key, deps.config.limits);
  if (subjects === undefined) return undefined;
  const isTokenLimited = subjects.some(({ limits }) => limits.tpm !== undefined);
  const most = isTokenLimited ? tokens.bound + planFor(0).maxTokens : 0;
  const request = { subjects, tokens: most };
  const { accountId, keyId, limitWaitMs: waitMs = deps.config.limits.waitMs ?? 0 } = context.caller;
  // A call that may wait for capacity must hold no money while it waits.
  const isFirst = waitMs > 0 || !deps.limiter.isFar(request);
  const verdict = (call.limiting =
    waitMs > 0
      ? deps.limitQueues.admit({ ...request, accountId, keyId, waitMs, signal: context.signal })
      : deps.limiter.admit(request));
  const admitted = verdict.then((each) => obey(quoted, each, most));
  // The hold may be refused before the verdict is known: then no code awaits this promise.
  admitted.catch(() => {});
  return { isFirst, admitted };
}

/** @throws GatewayError RATE_LIMIT_EXCEEDED */
function obey<Out extends Chunk>(
  { call, deps }: Quoted<Out>,
  verdict: Ticket | LimitRefusal,
  most: number,
): void {
  if (!verdict.isAdmitted) {
    deps.metrics.limitRefusals.inc({ limit: `${verdict.subject.kind}_${verdict.reason}` });
    throw rateLimited(verdict, most, deps.clock);
  }
  call.limitHeaders = ticketHeaders(verdict, deps.clock);
}

/**
 * Reports the end of a call to its limits, and returns its unused tokens. Harmless for a call
 * without limits.
 */
export function endLimits(
  { limiting, usage, start }: Call,
  { limiter, limitQueues }: Pick<PipelineDeps, "limiter" | "limitQueues">,
): void {
  if (limiting === undefined) return;
  const usedTokens = usage === undefined ? 0 : usage.inputTokens + usage.outputTokens;
  // Nothing was counted for a call that could not be checked.
  limiting.then(
    (verdict) => {
      if (!verdict.isAdmitted) return;
      limiter.end(verdict, usedTokens);
      limitQueues.onEnd(start.accountId);
    },
    () => {},
  );
}

/** The limits of a call; undefined if there are none, as for nearly every installation. */
function subjectsOf(
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

const owners = {
  key: "API key",
  account: "account",
  model: "model",
  credential: "vendor credential",
} as const;

const units = { requests: "requests per minute", tokens: "tokens per minute" } as const;

/**
 * 429 for a refused request: it names the limit and the time to wait. @param tokens the maximum
 * that the request may use
 */
function rateLimited(refusal: LimitRefusal, tokens: number, clock: Clock): GatewayError {
  const { subject, reason, retryMs } = refusal;
  const most = limitOf(subject.limits, reason) ?? 0;
  const owner = owners[subject.kind];
  const isTooLarge = reason === "tokens" && tokens > most;
  const what =
    reason === "concurrency"
      ? `the ${owner} already runs the ${most} calls that it may run at once`
      : `the ${owner} may use ${most} ${units[reason]}`;
  const remedy = isTooLarge
    ? `this request alone may use ${tokens}: request fewer (max_tokens)`
    : "retry after the time in the retry-after header";
  return new GatewayError(
    ErrorCode.RATE_LIMIT_EXCEEDED,
    `Rate limit exceeded: ${what}; ${remedy}`,
    {
      retryAfterSeconds: Math.max(1, Math.ceil(retryMs / 1_000)),
      metadata: { limit_owner: subject.kind, limit_type: reason, limit: String(most) },
      headers: limitHeaders([{ limits: subject.limits, used: refusal.used }], retryMs, clock),
    },
  );
}

function limitOf(limits: RateLimits, reason: LimitRefusal["reason"]): number | undefined {
  if (reason === "requests") return limits.rpm;
  return reason === "tokens" ? limits.tpm : limits.concurrency;
}

/** The headers of an admitted call: of each kind of limit the one with the least left. */
function ticketHeaders({ subjects, used }: Ticket, clock: Clock): Record<string, string> {
  const none = { requests: 0, tokens: 0 };
  const all = subjects.map(({ limits }, index) => ({ limits, used: used[index] ?? none }));
  return limitHeaders(all, windowMs, clock);
}

/** The time after which no current use counts any longer. */
const windowMs = 65_000;

interface Limited {
  readonly limits: RateLimits;
  readonly used: { readonly requests: number; readonly tokens: number };
}

/** In OpenAI's form, and in Anthropic's. @param resetMs time until the limit has capacity again */
function limitHeaders(
  all: readonly Limited[],
  resetMs: number,
  clock: Clock,
): Record<string, string> {
  const headers: Record<string, string> = {};
  const seconds = Math.max(1, Math.ceil(resetMs / 1_000));
  const resetTime = new Date(clock.now() + seconds * 1_000).toISOString();
  for (const [unit, key] of [
    ["requests", "rpm"],
    ["tokens", "tpm"],
  ] as const) {
    const [least] = all
      .flatMap(({ limits, used }) => {
        const most = limits[key];
        return most === undefined ? [] : [{ most, left: Math.max(0, most - used[unit]) }];
      })
      .toSorted((a, b) => a.left - b.left);
    if (least === undefined) continue;
    headers[`x-ratelimit-limit-${unit}`] = String(least.most);
    headers[`x-ratelimit-remaining-${unit}`] = String(least.left);
    headers[`x-ratelimit-reset-${unit}`] = `${seconds}s`;
    headers[`anthropic-ratelimit-${unit}-limit`] = String(least.most);
    headers[`anthropic-ratelimit-${unit}-remaining`] = String(least.left);
    headers[`anthropic-ratelimit-${unit}-reset`] = resetTime;
  }
  return headers;
}
