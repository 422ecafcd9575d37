/** The migrations, oldest first. A new one is a file in migration/ and a line here; merged ones never change. */
import type { MigrationObject } from "@mikro-orm/core";

export const migrations: readonly MigrationObject[] = [];
