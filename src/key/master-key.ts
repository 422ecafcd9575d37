/** Checks that a process has the master key that the secrets of its database are encrypted with. */
import type { Pool } from "pg";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { createDataKeys, gatewayId } from "./data-keys.ts";

/**
 * Records the master key of a new database; compares it with that of any other (R-MON-14). Two
 * gateways with different keys would each encrypt secrets that the other cannot read.
 *
 * @throws if the database's secrets are encrypted with another master key; the message says what to
 * do
 */
export async function requireMasterKey(pool: Pool, masterKey: () => Uint8Array): Promise<void> {
  const sealing = await mapDatabaseLoss(createDataKeys({ pool, masterKey }).sealingOf(gatewayId));
  if (sealing !== undefined) return;
  throw new Error(
    "The secrets of this database are encrypted with another master key: set UAS_MASTER_KEY to the former key (or restore master.key in the data folder). To change the key deliberately, stop all gateways and run `uas master-key rotate --previous FILE`, or `uas master-key rotate --lost` if the former key is lost",
  );
}
