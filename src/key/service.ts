/** The RPCs of API keys. */
import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { LockMode } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type {
  CreateKeyRequest,
  KeyService,
  UpdateKeyRequest,
} from "../../gen/uas/key/v1/key_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { maySeeAccount, noSuchAccount, parseAccountId } from "../account/room.ts";
import type { RequireStepUp } from "../core/browser-session.ts";
import { callerKey, type Caller } from "../core/caller.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { parsePositiveMoney } from "../core/money.ts";
import { changedFacts, recordAction, type Facts } from "../core/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { readUpdateMask } from "../core/partial-update.ts";
import { parseDisplayName } from "../core/line-parser.ts";
import { isUuid, newId } from "../core/uuid.ts";
import { createRevealRpc, type KeyCopies, type RevealedKey } from "./copies.ts";
import { ApiKeyEntity, KeyCopyEntity } from "./entity.ts";
import { createKeyMessages, parseModelList, type KeyRow, type SpentOf } from "./message.ts";
import { digestBytes, digestSecret, maskSecret, newSecret } from "./secret.ts";
import {
  keyIsDeleted,
  noSuchKey,
  keyTransitions,
  type KeyAction,
  type StoredKeyState,
} from "./state.ts";

/** Options of {@link createKeyService}. */
interface KeyServiceOptions {
  readonly orm: MikroORM;
  /** Whether an account exists; answered by the account room. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** The spending of keys; answered by billing. */
  readonly spentOf: SpentOf;
  readonly copies: KeyCopies;
  /** Requires a one-time code from sessions. */
  readonly requireStepUp: RequireStepUp;
  /** Called for each key that was shown again. Default: nothing happens. */
  readonly onReveal?: (facts: RevealedKey) => void;
}

type Rpcs = ServiceImpl<typeof KeyService>;

/** Implements `uas.key.v1.KeyService`. */
export function createKeyService(options: KeyServiceOptions): Rpcs {
  return { ...listAndCreate(options), ...getAndChange(options), ...createRevealRpc(options) };
}

function listAndCreate({
  orm,
  accountExists,
  spentOf,
  copies,
}: KeyServiceOptions): Pick<Rpcs, "listKeys" | "createKey"> {
  const { messagesOf, messageOf } = createKeyMessages(orm, { spentOf, copies });
  const requireAccount = async (caller: Caller | undefined, id: string): Promise<string> => {
    const accountId = parseAccountId(caller, id);
    if (!(await accountExists(accountId))) throw noSuchAccount();
    return accountId;
  };
  return {
    async listKeys(request, { values }) {
      const page = readPage(request, { isKey: isUuid });
      const accountId = await requireAccount(values.get(callerKey), request.accountId);
      const where = page.after === undefined ? {} : { id: { $lt: page.after } };
      const rows = await mapDatabaseLoss(
        orm.em
          .fork()
          .find(
            ApiKeyEntity,
            { accountId, ...where },
            { orderBy: { id: "desc" }, limit: page.limit + 1 },
          ),
      );
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { keys: await messagesOf(items), nextPageToken };
    },

    async createKey(request, { values }) {
      const terms = readTerms(request);
      const accountId = await requireAccount(values.get(callerKey), request.accountId);
      const secret = newSecret();
      const id = newId();
      const sealed = await copies.seal(accountId, id, secret);
      const fresh = {
        id,
        accountId,
        ...terms,
        digest: digestBytes(digestSecret(secret)),
        masked: maskSecret(secret),
        state: KeyState.ENABLED,
      };
      const work = orm.em.fork().transactional(async (em) => {
        const created = em.create(ApiKeyEntity, fresh);
        if (sealed !== undefined) em.create(KeyCopyEntity, { keyId: id, accountId, sealed });
        await em.flush();
        const after = factsOf(created);
        await recordAction(em, values, { action: "key.create", accountId, subject: id, after });
        return created;
      });
      return { key: await messageOf(await mapDatabaseLoss(work)), secret };
    },
  };
}

/** Reads the properties of a new key. @throws GatewayError INVALID_REQUEST */
function readTerms({ name, models, expireTime, spendLimit }: CreateKeyRequest) {
  return {
    name: parseDisplayName(name, 0),
    models: parseModelList(models),
    expireTime: parseExpiry(expireTime),
    spendLimit: parseLimit(spendLimit),
  };
}

function getAndChange({
  orm,
  spentOf,
  copies,
}: KeyServiceOptions): Pick<
  Rpcs,
  "getKey" | "updateKey" | "enableKey" | "disableKey" | "deleteKey"
> {
  const { messageOf } = createKeyMessages(orm, { spentOf, copies });
  const change =
    (action: KeyAction): Rpcs["enableKey"] & Rpcs["disableKey"] & Rpcs["deleteKey"] =>
    async ({ keyId }, { values }) => {
      const apply = (row: KeyRow): void => takeAction(row, action);
      const wanted = { keyId, values, action: `key.${action}`, apply };
      return { key: await messageOf(await changeKey(orm, wanted)) };
    };
  return {
    async getKey({ keyId }, { values }) {
      const row = isUuid(keyId)
        ? await mapDatabaseLoss(orm.em.fork().findOne(ApiKeyEntity, { id: keyId }))
        : null;
      return { key: await messageOf(requireOwn(values.get(callerKey), row)) };
    },

    async updateKey(request, { values }) {
      const changed: ChangedKey = readKeyChange(request);
      const keyId = request.key?.keyId ?? "";
      const apply = (row: KeyRow): void => {
        if (row.state === KeyState.DELETED) throw keyIsDeleted();
        Object.assign(row, changed);
      };
      const wanted = { keyId, values, action: "key.update", apply };
      return { key: await messageOf(await changeKey(orm, wanted)) };
    },
    enableKey: change("enable"),
    disableKey: change("disable"),
    deleteKey: change("delete"),
  };
}

interface Change {
  readonly keyId: string;
  readonly values: ContextValues;
  /** The name in the operator log. */
  readonly action: string;
  /** Changes the row. @throws GatewayError where the change is not allowed */
  readonly apply: (row: KeyRow) => void;
}

/** Changes a key under its row lock, so that concurrent changes see each other. */
function changeKey(orm: MikroORM, change: Change): Promise<KeyRow> {
  const { keyId, values, action, apply } = change;
  const caller = values.get(callerKey);
  if (!isUuid(keyId)) return Promise.reject(noSuchKey());
  const work = orm.em.fork().transactional(async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }, lock));
    const { accountId } = row;
    const before = factsOf(row);
    apply(row);
    await em.flush();
    const changed = changedFacts(before, factsOf(row));
    await recordAction(em, values, { action, accountId, subject: keyId, ...changed });
    // A trigger may have set delete_time. Read the row anew: refresh() returns amounts as texts.
    em.clear();
    return requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }));
  });
  return mapDatabaseLoss(work);
}

/** The facts of a key for the operator log. */
function factsOf({ name, masked, state, models, expireTime, spendLimit }: KeyRow): Facts {
  const word = stateWords[state as StoredKeyState];
  return { name, masked, state: word, models, expireTime, spendLimit };
}

const stateWords: Readonly<Record<StoredKeyState, string>> = {
  [KeyState.ENABLED]: "enabled",
  [KeyState.DISABLED]: "disabled",
  [KeyState.DELETED]: "deleted",
};

function takeAction(row: KeyRow, action: KeyAction): void {
  const next = keyTransitions[action][row.state as StoredKeyState];
  if (next === undefined) throw keyIsDeleted();
  row.state = next;
}

/** Refuses another account's key as not found, so that nobody can probe for keys. */
function requireOwn(caller: Caller | undefined, row: KeyRow | null): KeyRow {
  if (row === null || !maySeeAccount(caller, row.accountId)) throw noSuchKey();
  return row;
}

/** The changed members of a key and their new values. */
type ChangedKey = Partial<Pick<KeyRow, "name" | "models" | "expireTime" | "spendLimit">>;

const changeable = ["name", "models", "expire_time", "spend_limit"] as const;

/** The last time that a Timestamp can express, in milliseconds: the end of the year 9999. */
const timeMsMax = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * Reads the changes of an UpdateKey request.
 *
 * @throws GatewayError INVALID_REQUEST
 */
export function readKeyChange({ key, updateMask }: UpdateKeyRequest): ChangedKey {
  const members = readUpdateMask(updateMask, changeable);
  return {
    ...(members.has("name") && { name: parseDisplayName(key?.name ?? "", 0) }),
    ...(members.has("models") && { models: parseModelList(key?.models ?? []) }),
    ...(members.has("expire_time") && { expireTime: parseExpiry(key?.expireTime) }),
    ...(members.has("spend_limit") && { spendLimit: parseLimit(key?.spendLimit) }),
  };
}

/**
 * Parses the expiry; null means never. A past time is refused as a mistake: to stop a key, disable it.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function parseExpiry(time: Timestamp | undefined): Date | null {
  if (time === undefined) return null;
  const wrong = (message: string): GatewayError =>
    new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "expire_time" });
  const { nanos } = time;
  const ms = Number(time.seconds) * 1_000;
  if (nanos < 0 || nanos > 999_999_999 || Math.abs(ms) > timeMsMax) {
    throw wrong("expire_time is no time between the years 1 and 9999");
  }
  const date = timestampDate(time);
  if (date.getTime() > Date.now()) return date;
  throw wrong("expire_time must be in the future; to stop a key now, disable it");
}

/** Parses the lifetime spending limit, in nano-USD; null means none. @throws GatewayError */
function parseLimit(limit: Money | undefined): bigint | null {
  return limit === undefined ? null : parsePositiveMoney("spend_limit", limit);
}
