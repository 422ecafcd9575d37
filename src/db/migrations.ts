/** The migrations, oldest first. A new one is a file in migration/ and a line here; merged ones never change. */
import type { MigrationObject } from "@mikro-orm/core";
import { AccountKey0001 } from "./migration/0001-account-key.ts";
import { Billing0002 } from "./migration/0002-billing.ts";
import { ResponseState0003 } from "./migration/0003-response-state.ts";
import { CallDropped0004 } from "./migration/0004-call-dropped.ts";

export const migrations: readonly MigrationObject[] = [
  { name: "0001-account-key", class: AccountKey0001 },
  { name: "0002-billing", class: Billing0002 },
  { name: "0003-response-state", class: ResponseState0003 },
  { name: "0004-call-dropped", class: CallDropped0004 },
];
