import type { Migration } from "../migrate.ts";
import { readFunctions } from "../sql.ts";

/** Lets accounts be closed and erased, the audit log included. */
export const erasure0010: Migration = {
  name: "0010-erasure",
  compatibleFrom: "0001-baseline",
  statements: () => [
    "alter table account drop constraint account_state_check",
    "alter table account add constraint account_state_check check (state >= 1 and state <= 4)",
    ...readFunctions("migration/0010-erasure/"),
  ],
};
