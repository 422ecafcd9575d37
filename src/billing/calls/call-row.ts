import type { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";

/** One row of the `call` table, in its column names: it goes to the database as JSON, as it is. */
export interface CallRow {
  readonly id: string;
  readonly request_id: string;
  readonly account_id: string;
  readonly key_id: string;
  readonly model: string;
  readonly vendor: string;
  readonly path: string;
  readonly stream: boolean;
  readonly status: number;
  /** The documented word; empty on success. */
  readonly error_code: string;
  readonly ending: CallEnding;
  readonly usage_source: UsageSource;
  readonly input_tokens: number;
  readonly cached_input_tokens: number;
  readonly cache_write_tokens: number;
  readonly output_tokens: number;
  readonly reasoning_tokens: number;
  /** Nano-USD as decimal digits: JSON numbers would lose precision. */
  readonly cost: string;
  /** Nano-USD as decimal digits. */
  readonly held: string;
  readonly price_version: string;
  /** ISO 8601 UTC with milliseconds. */
  readonly start_time: string;
  readonly duration_ms: number;
  readonly first_byte_ms: number;
  readonly upstream_request_id: string;
  /** What the other style could not carry, comma separated. Null in records of older versions. */
  readonly dropped: string | null;
  /** The account's discount, in hundredths of a percent. Null in records of older versions, as what follows. */
  readonly discount_bp: number | null;
  /** Whether the usage was charged: else the call was for nothing, whatever it used. */
  readonly charged: boolean | null;
  /** Pictures made; null where there can be none. */
  readonly images: number | null;
  /** Microseconds of film or sound made; null where there can be none. */
  readonly second_micros: number | null;
  /** What the vendor charges us, nano-USD as decimal digits: booked beside the charge. Null or left out
   * where no cost is configured. */
  readonly vendor_cost?: string | null;
  /** The vendors that could not take it, in their order. Null or left out where there are none. */
  readonly attempts?: readonly AttemptRow[] | null;
}

/** A vendor that could not take a call. */
export interface AttemptRow {
  readonly vendor: string;
  /** The documented word. */
  readonly error_code: string;
  readonly duration_ms: number;
}
