/**
 * Tracks a vendor's remaining quota by the rate limit headers of its replies, so that calls use
 * other routes before it answers 429.
 */

type Headers = Readonly<Record<string, string>>;

/** One of the limits of a vendor. */
interface Left {
  /** Remaining quota, less what this process has used since; undefined if unknown. */
  amount: number | undefined;
  /** When the limit gives room again, in milliseconds of the process's clock. */
  untilMs: number;
}

/** An attempt, for the figures of its reply. */
export interface QuotaMark {
  readonly requests: number;
  readonly tokens: number;
}

/**
 * A vendor's answer says little about much later: the longest time that an empty limit keeps calls
 * away.
 */
const waitMsMax = 60_000;

/**
 * A vendor's remaining limits for one route and credential. Figures of replies are reduced by
 * requests that were sent later, so concurrent calls do not overshoot.
 */
export class VendorQuota {
  readonly #requests: Left = { amount: undefined, untilMs: 0 };
  readonly #tokens: Left = { amount: undefined, untilMs: 0 };
  #sentRequests = 0;
  #sentTokens = 0;

  /** Counts a request that is sent. @param tokens the maximum that it may use */
  sent(tokens: number): QuotaMark {
    this.#sentRequests++;
    this.#sentTokens += tokens;
    take(this.#requests, 1);
    take(this.#tokens, tokens);
    return { requests: this.#sentRequests, tokens: this.#sentTokens };
  }

  /**
   * Reads the headers of a reply, which the vendor wrote when it accepted the request of `mark`.
   */
  received(headers: Headers, mark: QuotaMark, nowMs: number): void {
    const requests = readLeft(headers, requestHeaders, nowMs);
    if (requests !== undefined) {
      this.#requests.amount = requests.amount - (this.#sentRequests - mark.requests);
      this.#requests.untilMs = requests.untilMs;
    }
    const tokens = readLeft(headers, tokenHeaders, nowMs);
    if (tokens === undefined) return;
    this.#tokens.amount = tokens.amount - (this.#sentTokens - mark.tokens);
    this.#tokens.untilMs = tokens.untilMs;
  }

  /** Whether the vendor takes a request now, by what it said last. */
  takes(tokens: number, nowMs: number): boolean {
    return has(this.#requests, 1, nowMs) && has(this.#tokens, tokens, nowMs);
  }
}

function take(left: Left, amount: number): void {
  if (left.amount !== undefined) left.amount -= amount;
}

function has({ amount, untilMs }: Left, needed: number, nowMs: number): boolean {
  return amount === undefined || amount >= needed || nowMs >= untilMs;
}

/** Names of headers: OpenAI's form, which most vendors have, and Anthropic's. */
interface QuotaHeaders {
  readonly remaining: readonly string[];
  readonly reset: readonly string[];
}

const requestHeaders: QuotaHeaders = {
  remaining: ["x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining"],
  reset: ["x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset"],
};

const tokenHeaders: QuotaHeaders = {
  remaining: ["x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining"],
  reset: ["x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"],
};

/** Whether a reply says anything about limits. */
export function hasQuota(headers: Headers): boolean {
  return (
    headers["x-ratelimit-remaining-requests"] !== undefined ||
    headers["x-ratelimit-remaining-tokens"] !== undefined ||
    headers["anthropic-ratelimit-requests-remaining"] !== undefined ||
    headers["anthropic-ratelimit-tokens-remaining"] !== undefined
  );
}

function readLeft(
  headers: Headers,
  { remaining, reset }: QuotaHeaders,
  nowMs: number,
): { readonly amount: number; readonly untilMs: number } | undefined {
  for (const [index, name] of remaining.entries()) {
    const text = headers[name] ?? "";
    if (!/^-?\d+$/.test(text)) continue;
    const waitMs = resetMs(headers[reset[index] ?? ""] ?? "");
    return { amount: Number(text), untilMs: nowMs + Math.min(waitMs, waitMsMax) };
  }
  return undefined;
}

const unitMs: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/**
 * `1m30s`, `20ms`, seconds, or a date, in milliseconds from now; what cannot be read is a second.
 */
function resetMs(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1_000;
  if (/^\d{4}-\d\d-\d\dT/.test(text)) {
    const ms = Date.parse(text) - Date.now();
    return Number.isNaN(ms) ? 1_000 : Math.max(0, ms);
  }
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(h|ms|m|s)/g)];
  if (parts.length === 0) return 1_000;
  return parts.reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * (unitMs[unit ?? ""] ?? 0),
    0,
  );
}
