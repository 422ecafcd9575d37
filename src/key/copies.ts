/**
 * Encrypted copies of keys, so that they can be shown again (R-KEY-1). A copy is encrypted with its
 * account's data key, and the data key with the master key. So a new master key changes one row per
 * account, and one account's rows decrypt no other's.
 */
import type { ServiceImpl } from "@connectrpc/connect";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Pool } from "pg";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import type { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { requireSession, type RequireStepUp } from "../core/browser-session.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { isUuid } from "../core/uuid.ts";
import { createDataKeys, gatewayId } from "./data-keys.ts";
import { ApiKeyEntity } from "./entity.ts";
import { noSuchKey } from "./state.ts";

/** The encrypted copies of all keys. */
export interface KeyCopies {
  /** Encrypts a key for storage; undefined if no copies are stored, or not for this account. */
  seal(accountId: string, keyId: string, secret: string): Promise<Buffer | undefined>;
  /**
   * Decrypts a key; undefined if no copy exists.
   *
   * @throws GatewayError if decryption fails
   */
  open(accountId: string, keyId: string): Promise<string | undefined>;
  /** Returns the keys that have a copy. */
  keptOf(keyIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** For a running gateway: deletes all copies if they are switched off. */
  sweep(): Promise<void>;
}

/** Options of {@link createKeyCopies}. */
interface KeyCopiesOptions {
  readonly pool: Pool;
  /** Returns the 32-byte master key; called on first use. */
  readonly masterKey: () => Uint8Array;
  /** Whether the operator has enabled copies. */
  readonly isOn: () => boolean;
  /**
   * Whether this is certainly the gateway's master key. If not, as in a shell without
   * UAS_MASTER_KEY, nothing is encrypted before a gateway has recorded its key.
   */
  readonly isKeySure: boolean;
  /** Logs that a copy could not be made. */
  readonly warn: (message: string, fields: object) => void;
}

const sql = {
  copy: `select sealed from key_copy where key_id = $1 and account_id = $2`,
  kept: `select key_id from key_copy where key_id = any($1::uuid[])`,
  sweep: `delete from key_copy`,
} as const;

/** Creates the store of copies. */
export function createKeyCopies(options: KeyCopiesOptions): KeyCopies {
  const { pool, isOn, isKeySure, warn } = options;
  const dataKeys = createDataKeys(options);
  /** Whether the gateway encrypts its copies with this master key. */
  const isGateways = async (): Promise<boolean> => {
    if (!isKeySure && !(await dataKeys.exists(gatewayId))) return false;
    return (await dataKeys.sealingOf(gatewayId)) !== undefined;
  };
  return {
    async seal(accountId, keyId, secret) {
      if (!isOn()) return undefined;
      try {
        const sealing = (await isGateways()) ? await dataKeys.sealingOf(accountId) : undefined;
        if (sealing !== undefined) return sealing.seal(accountId, Buffer.from(keyId), secret);
        warn("no copy of a new key is stored: UAS_MASTER_KEY differs from the gateway's key", {
          keyId,
        });
      } catch (err) {
        if (err instanceof GatewayError) throw err;
        // A key works without its copy, so an unwritable folder must not prevent its creation.
        warn("no copy of a new key is stored: there is no master key", { keyId, err });
      }
      return undefined;
    },

    async open(accountId, keyId) {
      if (!isOn()) return undefined;
      const query = pool.query<{ sealed: Buffer }>(sql.copy, [keyId, accountId]);
      const [row] = (await mapDatabaseLoss(query)).rows;
      if (row === undefined) return undefined;
      const sealing = await dataKeys.sealingOf(accountId);
      const secret = sealing?.open(accountId, Buffer.from(keyId), row.sealed);
      if (secret === undefined) throw cannotOpen();
      return secret;
    },

    async keptOf(keyIds) {
      if (!isOn() || keyIds.length === 0) return new Set();
      const { rows } = await mapDatabaseLoss(
        pool.query<{ key_id: string }>(sql.kept, [[...keyIds]]),
      );
      return new Set(rows.map(({ key_id: keyId }) => keyId));
    },

    async sweep() {
      if (!isOn()) await pool.query(sql.sweep);
    },
  };
}

function cannotOpen(): GatewayError {
  return new GatewayError(
    ErrorCode.INTERNAL_ERROR,
    "the copy of the key cannot be opened: it was sealed with another master key; the operator must set UAS_MASTER_KEY to the gateway's key",
  );
}

/** A key that was shown, for the log. */
export interface RevealedKey {
  readonly keyId: string;
  /** The user who saw it. */
  readonly userId: string;
}

/** Options of {@link createRevealRpc}. */
interface RevealOptions {
  readonly orm: MikroORM;
  readonly copies: KeyCopies;
  readonly requireStepUp: RequireStepUp;
  /** Called for each key that was shown. Does nothing by default. */
  readonly onReveal?: (facts: RevealedKey) => void;
}

/** Creates the RPC. Only sessions of the key's account may call it; operators are no exception. */
export function createRevealRpc({
  orm,
  copies,
  requireStepUp,
  onReveal = () => {},
}: RevealOptions): Pick<ServiceImpl<typeof KeyService>, "revealKey"> {
  return {
    async revealKey({ keyId, code }, context) {
      const { accountId, userId } = requireSession(context);
      const where = { id: keyId, accountId };
      const row = isUuid(keyId)
        ? await mapDatabaseLoss(orm.em.fork().findOne(ApiKeyEntity, where))
        : null;
      if (row === null) throw noSuchKey();
      // Checked before the code is consumed, so that the code stays valid if nothing can be shown.
      const secret = await copies.open(accountId, keyId);
      if (secret === undefined) throw noCopy();
      await requireStepUp(context, { action: CodeAction.REVEAL_KEY, subjectId: keyId, code });
      onReveal({ keyId, userId });
      return { secret };
    },
  };
}

function noCopy(): GatewayError {
  const text = "no copy of this key is stored: create another one, and delete this one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}
