/** The migrations of this program. */
import type { Migration } from "./migrate.ts";
import { baseline0001 } from "./migration/0001-baseline.ts";
import { idempotentCalls0002 } from "./migration/0002-idempotent-calls.ts";
import { configuration0003 } from "./migration/0003-configuration.ts";
import { operatorAlert0004 } from "./migration/0004-operator-alert.ts";
import { priceList0005 } from "./migration/0005-price-list.ts";
import { taskTraces0006 } from "./migration/0006-task-traces.ts";
import { exportDays0007 } from "./migration/0007-export-days.ts";
import { auditRetention0008 } from "./migration/0008-audit-retention.ts";
import { serviceCredentials0009 } from "./migration/0009-service-credentials.ts";
import { erasure0010 } from "./migration/0010-erasure.ts";

/**
 * All migrations, oldest first. A new one is a file in migration/ and a line here; released ones
 * never change.
 */
export const migrations: readonly Migration[] = [
  baseline0001,
  idempotentCalls0002,
  configuration0003,
  operatorAlert0004,
  priceList0005,
  taskTraces0006,
  exportDays0007,
  auditRetention0008,
  serviceCredentials0009,
  erasure0010,
];
