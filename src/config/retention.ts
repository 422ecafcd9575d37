/** `retention:` of a configuration: how long records are kept. */
import type { z } from "zod";
import { days } from "./scalars.ts";
import { section } from "./schema.ts";

/** How long records are kept. Ledger entries are kept for ever. */
export type RetentionConfig = z.output<typeof retentionSchema>;

/** The schema of the section. */
export const retentionSchema = section({
  /** How long the call log keeps a call, in days; undefined for ever. */
  calls: days().optional(),
});
