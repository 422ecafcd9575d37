/** The shape of one row of the call table. */
import type { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { UsageSource } from "../../../gen/uas/type/v1/usage_pb.ts";
import type { RowOf } from "../../db/row.ts";
import type { CallEntity } from "./entity.ts";

/**
 * One row of the `call` table, in its column names: it goes to the database as JSON, as it is.
 * Amounts are decimal digits, because JSON numbers would lose precision.
 */
export type CallRow = Omit<
  WithOptionalNulls<RowOf<typeof CallEntity>>,
  "start_time" | "second_micros" | "vendor_cost" | "attempts" | "units"
> & {
  readonly ending: CallEnding;
  readonly usage_source: UsageSource;
  /** ISO 8601 UTC with milliseconds. */
  readonly start_time: string;
  /** A number: JSON keeps microseconds of less than 285 years. */
  readonly second_micros: number | null;
  /** Null or left out where no cost is configured. */
  readonly vendor_cost?: string | null;
  /**
   * Failed attempts in their order, then the answered one if there was a choice. Null or left out:
   * none.
   */
  readonly attempts?: readonly AttemptRow[] | null;
  /**
   * Quantities of units that few calls use, by their names in `uas.yaml`. Null or left out if there
   * are none.
   */
  readonly units?: Readonly<Record<string, number>> | null;
};

/** A row whose nullable columns may be left out. */
type WithOptionalNulls<Row> = {
  [Column in keyof Row as null extends Row[Column] ? never : Column]: Row[Column];
} & { [Column in keyof Row as null extends Row[Column] ? Column : never]?: Row[Column] };

/** An attempt at a vendor. */
export interface AttemptRow {
  readonly vendor: string;
  /** The vendor's name of the model. Absent in records of older versions. */
  readonly model?: string;
  /** The name of the vendor's credential. Absent in records of older versions. */
  readonly credential?: string;
  /** The documented word. Absent if the attempt was answered. */
  readonly error_code?: string;
  /** The failure for routing, an AttemptFailure. Absent if the attempt was answered. */
  readonly failure?: string;
  readonly duration_ms: number;
  /** Maximum that the vendor may charge for it, in nano-USD. Absent if nothing or unknown. */
  readonly vendor_cost?: string;
}
