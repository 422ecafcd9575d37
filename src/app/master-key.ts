/** Changes the master key of an installation whose gateways are stopped. */
import type { PoolClient } from "pg";
import { sealedAuthenticators } from "../account/user/proof.ts";
import { sealedReplies } from "../calls/idempotency/claims.ts";
import type { RotatedSecrets, RotateOptions } from "../cli/context.ts";
import { type MasterKeys, resealColumns } from "../core/sealed-columns.ts";
import { openDatabase } from "../db/database.ts";
import { openEmbedded } from "../db/embedded/embedded.ts";
import { sealedReasoning } from "../responses/stored/reasoning.ts";
import { gatewayId, sealedDataKeys } from "../key/data-keys.ts";
import { sealedConfigSecrets } from "../operator/configuration/secrets.ts";
import { requireMasterKey } from "../key/master-key.ts";
import { inTransaction } from "../task/transition.ts";
import { sealedSecrets } from "../webhook/secrets.ts";
import { masterKeyOf, silent } from "./backend.ts";

/** Seconds for which a gateway that was killed still counts as running. */
const gatewayGoneSeconds = 60;

const sql = {
  running: `select name from node where ended is null
    and seen_time > now() - interval '${gatewayGoneSeconds} s'`,
  dataKeys: `delete from data_key where account_id <> '${gatewayId}'`,
  marker: `delete from data_key`,
  copies: `delete from key_copy`,
  secrets: `delete from webhook_secret`,
  authenticators: `update console_user set totp = null, totp_pending = null
    where totp is not null or totp_pending is not null`,
  reasoning: `delete from kept_reasoning`,
  replies: `update idempotent_call set sealed = null, bytes = 0 where sealed is not null`,
  configSecrets: `delete from config_secret`,
} as const;

/**
 * Encrypts the secrets of the database with the master key of the settings, in one transaction. All
 * gateways must be stopped: a running one would continue with the former key.
 *
 * @throws if a gateway runs, or the former key does not open the secrets; then nothing has changed
 */
export async function rotateMasterKey({
  settings,
  previous,
}: RotateOptions): Promise<RotatedSecrets> {
  const { databaseUrl, dataDir } = settings;
  const log = { info: () => {}, warn: () => {} };
  const embedded = databaseUrl === undefined ? await openEmbedded({ dataDir, log }) : undefined;
  try {
    const database = await openDatabase(databaseUrl ?? embedded?.url ?? "");
    try {
      const next = masterKeyOf(settings, silent());
      const rotated = await inTransaction(database.jobPool, async (client) => {
        await requireStopped(client);
        return previous === undefined ? discard(client) : reseal(client, { previous, next });
      });
      await requireMasterKey(database.pool, () => next);
      return rotated;
    } finally {
      await database.close();
    }
  } finally {
    await embedded?.stop();
  }
}

async function requireStopped(client: PoolClient): Promise<void> {
  const { rows } = await client.query<{ name: string }>(sql.running);
  const [first] = rows;
  if (first === undefined) return;
  throw new Error(
    `A gateway is running on this database (${first.name}): stop all gateways and try again; one that was killed counts as stopped after ${gatewayGoneSeconds} s`,
  );
}

async function reseal(client: PoolClient, keys: MasterKeys): Promise<RotatedSecrets> {
  const dataKeys = await resealColumns(client, sealedDataKeys, keys).catch((cause: unknown) => {
    throw new Error(
      "The secrets of this database are not encrypted with the given previous key; nothing was changed",
      { cause },
    );
  });
  await resealColumns(client, sealedReplies, keys);
  return {
    // One row identifies the master key.
    dataKeys: Math.max(0, dataKeys - 1),
    webhookSecrets: await resealColumns(client, sealedSecrets, keys),
    authenticators: await resealColumns(client, sealedAuthenticators, keys),
    reasoning: await resealColumns(client, sealedReasoning, keys),
    configSecrets: await resealColumns(client, sealedConfigSecrets, keys),
  };
}

async function discard(client: PoolClient): Promise<RotatedSecrets> {
  const count = async (text: string): Promise<number> => (await client.query(text)).rowCount ?? 0;
  const rotated = {
    dataKeys: await count(sql.dataKeys),
    webhookSecrets: await count(sql.secrets),
    authenticators: await count(sql.authenticators),
    reasoning: await count(sql.reasoning),
    configSecrets: await count(sql.configSecrets),
  };
  await client.query(sql.replies);
  await client.query(sql.copies);
  await client.query(sql.marker);
  return rotated;
}
