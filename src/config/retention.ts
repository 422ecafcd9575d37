/** `retention:` of a configuration: how long records are kept. */
import type { z } from "zod";
import { days } from "./scalars.ts";
import { section } from "./schema.ts";

/** Retention of records. Ledger entries are kept indefinitely. */
export type RetentionConfig = z.output<typeof retentionSchema>;

/** The schema of the section. */
export const retentionSchema = section({
  /** Days for which the call log keeps a call; undefined means indefinitely. */
  calls: days().optional(),
});
