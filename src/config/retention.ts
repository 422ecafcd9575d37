/** `retention:` of a configuration: how long records are kept. */
import type { z } from "zod";
import { days } from "./scalars.ts";
import { section } from "./schema.ts";

/** Retention of records. Ledger entries are kept indefinitely. */
export type RetentionConfig = z.output<typeof retentionSchema>;

const retentionKeys = {
  calls:
    "How long calls stay in the call log, such as `400d`. They are deleted by whole months, when the last call of the month is older, and their receipts with them. Usage statistics, balances and ledger entries stay. Default: indefinitely.",
};

/** The schema of the section. */
export const retentionSchema = section(
  {
    /** Days for which the call log keeps a call; undefined means indefinitely. */
    calls: days().optional(),
  },
  { about: retentionKeys },
);
