import type { Migration } from "../migrate.ts";
import { readFunctions } from "../sql.ts";

/** Lets retention delete old entries of the audit log, which is append-only otherwise. */
export const auditRetention0008: Migration = {
  name: "0008-audit-retention",
  compatibleFrom: "0001-baseline",
  statements: () => [...readFunctions("migration/0008-audit-retention/")],
};
