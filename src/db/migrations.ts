/** The migrations, oldest first. A new one is a file in migration/ and a line here; released ones never change. */
import type { MigrationObject } from "@mikro-orm/core";
import { Baseline0001 } from "./migration/0001-baseline.ts";

export const migrations: readonly MigrationObject[] = [
  { name: "0001-baseline", class: Baseline0001 },
];
