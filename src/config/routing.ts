/** Settings of routing: shares of calls, circuit breakers, retries. */
import type { z } from "zod";
import type { BreakerConfig, LimitDefaults, RetryConfig, UploadLimits } from "./config.ts";
import { limitWaitMsMax } from "../core/limits.ts";
import { duration, positive, whole, word } from "./scalars.ts";
import { mapsOf, section } from "./schema.ts";

/** The breaker of a vendor that sets none. */
export const breakerDefault: BreakerConfig = {
  failures: 5,
  windowMs: 30_000,
  cooldownMs: 10_000,
  singleRoute: "try",
};

/** The retries of a model that sets none. */
export const retryDefault: RetryConfig = { attempts: 3, withinMs: 20_000 };

/** Attempts of one call, at most: each may cost what the whole call costs. */
const attemptsMax = 10;

const breakerKeys = {
  failures: "Failures in a row within the window that open the breaker.",
  window: "The time in which they count.",
  cooldown: "The first pause before a probe; it doubles with each failed probe.",
  single_route: "What happens to calls whose only route has an open breaker.",
};

export const breakerSchema = section(
  {
    failures: whole(1, 1_000).default(breakerDefault.failures),
    window: duration().default(breakerDefault.windowMs),
    cooldown: duration().default(breakerDefault.cooldownMs),
    single_route: word(["try", "refuse"]).default(breakerDefault.singleRoute),
  },
  { about: breakerKeys },
).transform(
  ({ failures, window, cooldown, singleRoute }): BreakerConfig => ({
    failures,
    windowMs: window,
    cooldownMs: cooldown,
    singleRoute,
  }),
);

const retryKeys = {
  attempts: "How often a call may be [tried](routing.md#failover), the first time included.",
  within: "How long after its first failure a further attempt may begin.",
};

export const retrySchema = section(
  {
    attempts: whole(1, attemptsMax).default(retryDefault.attempts),
    within: duration().default(retryDefault.withinMs),
  },
  { about: retryKeys },
).transform(({ attempts, within }): RetryConfig => ({ attempts, withinMs: within }));

const limitKeys = {
  rpm: "Requests in any 60 seconds. Default: no limit.",
  tpm: "Tokens in any 60 seconds. Default: no limit.",
  concurrency: "Calls at once, over all processes. Default: no limit.",
};

/** Limits of rate and concurrency, in the form of {@link RateLimits}. */
export const limitsSchema = section(
  {
    rpm: positive().optional(),
    tpm: positive().optional(),
    concurrency: positive().optional(),
  },
  { about: limitKeys },
);

/** Daily uploads of an account to vendors if the file does not set them. */
export const uploadLimitsDefault: UploadLimits = {
  objectsPerDay: 1_000,
  bytesPerDay: 2 * 1_024 ** 3,
};

const uploadKeys = {
  objects_per_day: "Files in a day (UTC).",
  bytes_per_day: "Their bytes in a day (UTC).",
};

const uploadsSchema = section(
  {
    objects_per_day: whole(0, 1_000_000_000).default(uploadLimitsDefault.objectsPerDay),
    bytes_per_day: whole(0, Number.MAX_SAFE_INTEGER).default(uploadLimitsDefault.bytesPerDay),
  },
  { about: uploadKeys },
);

const limitDefaultKeys = {
  key: "Of each API key that has no limits of its own.",
  account: "Of each account that has no limits of its own.",
  model: "Of each model, over all accounts.",
  uploads: "Files that an account may [upload to vendors](native.md#uploads).",
  wait: "How long a call [waits for room](keys-and-accounts.md#waiting-for-room) instead of an immediate 429, at most `30s`. Default: not at all.",
};

/** The schema of `limits:`. An empty section is as none. */
export const limitDefaultsSchema = section(
  {
    key: someLimits().optional(),
    account: someLimits().optional(),
    model: someLimits().optional(),
    uploads: uploadsSchema.optional(),
    wait: duration()
      .refine((waitMs) => waitMs <= limitWaitMsMax, {
        error: `must be at most ${limitWaitMsMax / 1_000}s: clients give up on a longer silence`,
      })
      .optional(),
  },
  { about: limitDefaultKeys },
).transform(
  ({ wait, ...limits }): LimitDefaults => ({
    ...limits,
    ...(wait !== undefined && { waitMs: wait }),
  }),
);

function someLimits() {
  return limitsSchema.transform((limits) =>
    Object.values(limits).some((limit) => limit !== undefined) ? limits : undefined,
  );
}

/** The keys of a route or credential that set its share of the calls. */
export function shareKeys() {
  return { weight: whole(0, 1_000_000).optional(), priority: whole(0, 1_000).optional() };
}

/** Describes them. */
export const shareAbout = {
  weight:
    "Share of the calls among those of the same priority. `0`: only if no other can take the call. Default: 1.",
  priority: "Lower numbers are used first. Default: 0.",
};

/** Reports priorities whose weights sum to 0: nothing would say who takes their calls. */
export function checkShares(entries: unknown, context: z.core.$RefinementCtx): void {
  const sums = new Map<unknown, { readonly sum: number; readonly index: number }>();
  for (const [index, { weight = 1, priority = 0 }] of mapsOf(entries)) {
    const sum = (sums.get(priority)?.sum ?? 0) + (typeof weight === "number" ? weight : 1);
    sums.set(priority, { sum, index });
  }
  for (const [priority, { sum, index }] of sums) {
    const message = `the weights of priority ${String(priority)} sum to 0: give at least one of them a weight of 1 or more`;
    if (sum === 0) context.addIssue({ code: "custom", path: [index, "weight"], message });
  }
}
