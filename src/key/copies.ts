/**
 * Copies of keys (R-KEY-1), sealed twice: each with its account's data key, and that with the master key. So a new master key
 * changes a row per account only, and what one account's rows tell opens no other's.
 */
import { randomBytes } from "node:crypto";
import type { ServiceImpl } from "@connectrpc/connect";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Pool } from "pg";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import type { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { requireSession, type RequireStepUp } from "../core/browser-session.ts";
import { answering } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { createSealing, type Sealing } from "../core/sealing.ts";
import { isUuid } from "../core/uuid.ts";
import { ApiKeyEntity } from "./entity.ts";
import { noSuchKey } from "./state.ts";

/** The copies of all keys. */
export interface KeyCopies {
  /** A key as it is to be kept; `undefined`: none are kept, or not this account's. */
  seal(accountId: string, keyId: string, secret: string): Promise<Buffer | undefined>;
  /** The key; `undefined`: no copy is kept. @throws GatewayError where it cannot be opened */
  open(accountId: string, keyId: string): Promise<string | undefined>;
  /** Which of these keys have one. */
  keptOf(keyIds: readonly string[]): Promise<ReadonlySet<string>>;
  /** What a running gateway does: says by which master key copies are kept, or removes them where none shall be. */
  sweep(): Promise<void>;
}

/** What {@link createKeyCopies} needs. */
interface KeyCopiesOptions {
  readonly pool: Pool;
  /** The master key, 32 bytes; asked for when it is first needed. */
  readonly masterKey: () => Uint8Array;
  /** Whether copies are kept: the operator says. */
  readonly isOn: boolean;
  /** Whether the master key certainly is the gateway's. Where it is not, as in a shell without UAS_MASTER_KEY, nothing
   * is sealed before a gateway has said by which. */
  readonly isKeySure: boolean;
  /** Told where no copy could be made. */
  readonly warn: (message: string, fields: object) => void;
}

const sql = {
  dataKey: `select wrapped from data_key where account_id = $1`,
  addDataKey: `insert into data_key (account_id, wrapped) values ($1, $2) on conflict do nothing`,
  copy: `select sealed from key_copy where key_id = $1 and account_id = $2`,
  kept: `select key_id from key_copy where key_id = any($1::uuid[])`,
  sweep: `delete from key_copy`,
} as const;

const dataKeyBytes = 32;

/** Stands where an account does: its row tells whether a master key is the one that copies are kept by. */
const nobody = "00000000-0000-0000-0000-000000000000";

/** What data keys are bound to, beside their account. */
const dataKeyContext = Buffer.from("data key");

/** The data keys of accounts, by one master key. */
function createDataKeys({ pool, masterKey }: Pick<KeyCopiesOptions, "pool" | "masterKey">) {
  let made: Sealing | undefined;
  const wrapping = (): Sealing => (made ??= createSealing(masterKey(), "data key"));
  const wrappedOf = async (accountId: string): Promise<Buffer | undefined> => {
    const query = pool.query<{ wrapped: Buffer }>(sql.dataKey, [accountId]);
    return (await answering(query)).rows[0]?.wrapped;
  };
  return {
    exists: async (accountId: string) => (await wrappedOf(accountId)) !== undefined,
    /** Makes one where there is none, exactly once; `undefined`: it was made by another master key. */
    async sealingOf(accountId: string): Promise<Sealing | undefined> {
      for (;;) {
        const wrapped = await wrappedOf(accountId);
        if (wrapped !== undefined) {
          const text = wrapping().open(accountId, dataKeyContext, wrapped);
          if (text === undefined) return undefined;
          return createSealing(Buffer.from(text, "base64"), "key copy");
        }
        const fresh = randomBytes(dataKeyBytes).toString("base64");
        const values = [accountId, wrapping().seal(accountId, dataKeyContext, fresh)];
        await answering(pool.query(sql.addDataKey, values));
      }
    },
  };
}

/** Makes the store. */
export function createKeyCopies(options: KeyCopiesOptions): KeyCopies {
  const { pool, isOn, isKeySure, warn } = options;
  const dataKeys = createDataKeys(options);
  let isGateway = false;
  /** Whether the gateway's copies are kept by this master key. */
  const isGateways = async (): Promise<boolean> => {
    if (!isKeySure && !isGateway && !(await dataKeys.exists(nobody))) return false;
    return (await dataKeys.sealingOf(nobody)) !== undefined;
  };
  return {
    async seal(accountId, keyId, secret) {
      if (!isOn) return undefined;
      try {
        const sealing = (await isGateways()) ? await dataKeys.sealingOf(accountId) : undefined;
        if (sealing !== undefined) return sealing.seal(accountId, Buffer.from(keyId), secret);
        warn("no copy of a new key is kept: UAS_MASTER_KEY is not that of the gateway", { keyId });
      } catch (err) {
        if (err instanceof GatewayError) throw err;
        // A key works without its copy; a folder that cannot be written must not keep an operator from making one.
        warn("no copy of a new key is kept: there is no master key", { keyId, err });
      }
      return undefined;
    },

    async open(accountId, keyId) {
      if (!isOn) return undefined;
      const query = pool.query<{ sealed: Buffer }>(sql.copy, [keyId, accountId]);
      const [row] = (await answering(query)).rows;
      if (row === undefined) return undefined;
      const sealing = await dataKeys.sealingOf(accountId);
      const secret = sealing?.open(accountId, Buffer.from(keyId), row.sealed);
      if (secret === undefined) throw cannotOpen();
      return secret;
    },

    async keptOf(keyIds) {
      if (!isOn || keyIds.length === 0) return new Set();
      const { rows } = await answering(pool.query<{ key_id: string }>(sql.kept, [[...keyIds]]));
      return new Set(rows.map(({ key_id: keyId }) => keyId));
    },

    async sweep() {
      isGateway = true;
      if (!isOn) await pool.query(sql.sweep);
      else if ((await dataKeys.sealingOf(nobody)) === undefined) {
        warn("copies of keys cannot be opened or made: UAS_MASTER_KEY is not the one before", {});
      }
    },
  };
}

function cannotOpen(): GatewayError {
  return new GatewayError(
    ErrorCode.INTERNAL_ERROR,
    "the copy of the key cannot be opened: it was sealed with another master key; the operator must set UAS_MASTER_KEY to that of the gateway",
  );
}

/* The RPC that shows a key again (R-KEY-3). */

/** That a key was shown, for the log. */
export interface RevealedKey {
  readonly keyId: string;
  /** To whom. */
  readonly userId: string;
}

/** What {@link createRevealRpc} needs. */
interface RevealOptions {
  readonly orm: MikroORM;
  readonly copies: KeyCopies;
  readonly requireStepUp: RequireStepUp;
  /** Told of each key that was shown. Default: nobody. */
  readonly onReveal?: (facts: RevealedKey) => void;
}

/** Makes it. Only for sessions of the key's own account: operators are no exception. */
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
        ? await answering(orm.em.fork().findOne(ApiKeyEntity, where))
        : null;
      if (row === null) throw noSuchKey();
      // Before the code is used up: where there is nothing to show, it is good for something else.
      const secret = await copies.open(accountId, keyId);
      if (secret === undefined) throw noCopy();
      await requireStepUp(context, { action: CodeAction.REVEAL_KEY, subjectId: keyId, code });
      onReveal({ keyId, userId });
      return { secret };
    },
  };
}

function noCopy(): GatewayError {
  const text = "no copy of this key is kept: create another one, and delete this one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}
