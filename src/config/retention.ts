/** `retention:` of a configuration: how long records are kept. */
import type { z } from "zod";
import { days, flag } from "./scalars.ts";
import { section } from "./schema.ts";

/** Retention of records. Ledger entries are kept indefinitely. */
export type RetentionConfig = z.output<typeof retentionSchema>;

const retentionKeys = {
  calls:
    "How long calls stay in the call log, such as `400d`. They are deleted by whole months, when the last call of the month is older, and their receipts with them. Usage statistics, balances and ledger entries stay. Default: indefinitely.",
  audit:
    "How long entries stay in the audit log of operators' actions, such as `730d`. Default: indefinitely.",
  export:
    "Whether each day of calls and of ledger entries is exported to `exports/` in the bucket of `storage`, or else in the data folder. A month of calls is then deleted only after all of it was exported.",
};

/** The schema of the section. */
export const retentionSchema = section(
  {
    /** Days for which the call log keeps a call; undefined means indefinitely. */
    calls: days().optional(),
    /** Days for which the audit log keeps an entry; undefined means indefinitely. */
    audit: days().optional(),
    export: flag().default(false),
  },
  { about: retentionKeys },
);
