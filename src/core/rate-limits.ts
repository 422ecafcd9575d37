/** Limits of rate and concurrency, as keys and accounts store them. */
import { create } from "@bufbuild/protobuf";
import {
  type RateLimits as Message,
  RateLimitsSchema,
} from "../../gen/uas/type/v1/rate_limits_pb.ts";

/** Limits of rate and concurrency. An undefined member is unlimited. */
export interface RateLimits {
  /** Requests per minute. */
  readonly rpm: number | undefined;
  /** Tokens per minute. */
  readonly tpm: number | undefined;
  /** Calls at once. */
  readonly concurrency: number | undefined;
}

/** The columns of a key or an account. If all are null, the defaults of the configuration apply. */
export interface RateColumns {
  readonly rpm?: number | null | undefined;
  readonly tpm?: number | null | undefined;
  readonly concurrency?: number | null | undefined;
}

/**
 * The limit that means none: its owner does not have the default of the configuration either. The
 * largest value of the columns.
 */
export const unlimitedRate = 2_147_483_647;

/** The limits of a row, for calls; undefined if the row sets none. */
export function ratesOf({ rpm, tpm, concurrency }: RateColumns): RateLimits | undefined {
  if (rpm == null && tpm == null && concurrency == null) return undefined;
  return { rpm: limitOf(rpm), tpm: limitOf(tpm), concurrency: limitOf(concurrency) };
}

function limitOf(stored: number | null | undefined): number | undefined {
  return stored === unlimitedRate ? undefined : (stored ?? undefined);
}

/** The limits of a row as a member of its message; empty if the row sets none. */
export function rateMember({ rpm, tpm, concurrency }: RateColumns): { rateLimits?: Message } {
  if (rpm == null && tpm == null && concurrency == null) return {};
  return {
    rateLimits: create(RateLimitsSchema, {
      ...(rpm != null && { rpm }),
      ...(tpm != null && { tpm }),
      ...(concurrency != null && { concurrency }),
    }),
  };
}

/** The columns of limits that a client sent. */
export function rateColumns(limits: Message | undefined) {
  const { rpm = null, tpm = null, concurrency = null } = limits ?? {};
  return { rpm, tpm, concurrency };
}
