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

/** The limits of a row, for calls; undefined if the row sets none. */
export function ratesOf({ rpm, tpm, concurrency }: RateColumns): RateLimits | undefined {
  if (rpm == null && tpm == null && concurrency == null) return undefined;
  return { rpm: rpm ?? undefined, tpm: tpm ?? undefined, concurrency: concurrency ?? undefined };
}

/** The limits of a row as a member of its message; empty if the row sets none. */
export function rateMember(row: RateColumns): { rateLimits?: Message } {
  const rates = ratesOf(row);
  if (rates === undefined) return {};
  const { rpm, tpm, concurrency } = rates;
  return {
    rateLimits: create(RateLimitsSchema, {
      ...(rpm !== undefined && { rpm }),
      ...(tpm !== undefined && { tpm }),
      ...(concurrency !== undefined && { concurrency }),
    }),
  };
}

/** The columns of limits that a client sent. */
export function rateColumns(limits: Message | undefined) {
  const { rpm = null, tpm = null, concurrency = null } = limits ?? {};
  return { rpm, tpm, concurrency };
}
