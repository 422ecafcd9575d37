/** The RPCs of API keys. */
import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { LockMode } from "@mikro-orm/core";
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type {
  CreateKeyRequest,
  KeyService,
  UpdateKeyRequest,
} from "../../gen/uas/key/v1/key_service_pb.ts";
import type { Budget } from "../../gen/uas/type/v1/budget_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { maySeeAccount, noSuchAccount, parseAccountId } from "../account/room.ts";
import { accountKeysMax } from "../core/limits.ts";
import { type Caller, callerKey } from "../core/caller.ts";
import { admitCaller } from "../core/caller-rules.ts";
import type { RequireStepUp } from "../core/browser-session.ts";
import { type Budgets, budgetFacts } from "../core/budgets.ts";
import type { Clock } from "../core/clock.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { changedFacts, recordAction, type Facts } from "../observe/operator-log.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { membersOf } from "../core/update-mask.ts";
import { rateColumns } from "../core/rate-limits.ts";
import { isUuid } from "../core/uuid.ts";
import { createRevealRpc, type KeyCopies, type RevealedKey } from "./copies.ts";
import { ApiKeyEntity, KeyCopyEntity } from "./entity.ts";
import { createKeyMessages, modelList, type KeyRow, type SpentOf } from "./message.ts";
import { digestBytes, digestSecret, maskSecret, newSecret } from "./secret.ts";
import {
  keyIsDeleted,
  noSuchKey,
  keyTransitions,
  type KeyAction,
  type StoredKeyState,
} from "./state.ts";

/** Options of {@link createKeyService}. */
export interface KeyServiceOptions {
  readonly orm: MikroORM;
  readonly clock: Pick<Clock, "newId">;
  /** Whether an account exists; answered by the account room. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** The spending of keys; answered by billing. */
  readonly spentOf: SpentOf;
  /** The budgets of keys; kept by billing. */
  readonly budgets: Budgets;
  readonly copies: KeyCopies;
  /** Requires a one-time code from sessions. */
  readonly requireStepUp: RequireStepUp;
  /** Called for each key that was shown again. Does nothing by default. */
  readonly onReveal?: (facts: RevealedKey) => void;
}

type Rpcs = ServiceImpl<typeof KeyService>;

/** Implements `uas.key.v1.KeyService`. */
export function createKeyService(options: KeyServiceOptions): Rpcs {
  return { ...listAndCreate(options), ...getAndChange(options), ...createRevealRpc(options) };
}

function listAndCreate(options: KeyServiceOptions): Pick<Rpcs, "listKeys" | "createKey"> {
  const { orm, clock, accountExists, copies, budgets } = options;
  const { messagesOf, messageOf } = createKeyMessages(orm, options);
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
      const wanted = budgets.check(request.budgets);
      const accountId = await requireAccount(values.get(callerKey), request.accountId);
      const secret = newSecret();
      const id = clock.newId();
      const sealed = await copies.seal(accountId, id, secret);
      const fresh = {
        id,
        accountId,
        ...terms,
        digest: digestBytes(digestSecret(secret)),
        masked: maskSecret(secret),
        state: KeyState.ENABLED,
      };
      const caller = values.get(callerKey);
      const work = orm.em.fork().transactional(async (em) => {
        if (caller?.kind === "session") await requireRoomForKey(em, accountId);
        const created = em.create(ApiKeyEntity, fresh);
        if (sealed !== undefined) em.create(KeyCopyEntity, { keyId: id, accountId, sealed });
        await em.flush();
        const after = { ...factsOf(created), ...(wanted.length > 0 && budgetFacts(wanted)) };
        await recordAction(em, values, { action: "key.create", accountId, subject: id, after });
        if (wanted.length > 0) await budgets.set(em, { accountId, ownerId: id, budgets: wanted });
        return created;
      });
      return { key: await messageOf(await mapDatabaseLoss(work)), secret };
    },
  };
}

/**
 * Refuses a key above the maximum of its account. The account's row is locked, so that keys created
 * at the same time are counted.
 *
 * @throws GatewayError INVALID_REQUEST
 */
async function requireRoomForKey(em: EntityManager, accountId: string): Promise<void> {
  await em.execute("select 1 from account where id = ? for update", [accountId]);
  const [counts] = await em.execute<{ kept: number; fresh: number }[]>(
    `select count(*) filter (where state <> ${KeyState.DELETED})::int as kept,
       count(*) filter (where create_time > now() - interval '1 day')::int as fresh
     from api_key where account_id = ?`,
    [accountId],
  );
  if (counts === undefined || Math.max(counts.kept, counts.fresh) < accountKeysMax) return;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    counts.kept < accountKeysMax
      ? `the account created ${accountKeysMax} keys within a day, its maximum: try again tomorrow`
      : `the account has ${accountKeysMax} keys, its maximum: delete those that are not used`,
  );
}

/** Reads the properties of a new key. */
function readTerms({ name, models, expireTime, spendLimit, rateLimits }: CreateKeyRequest) {
  return {
    name: name.trim(),
    models: modelList(models),
    expireTime: dateOf(expireTime),
    spendLimit: nanosOf(spendLimit),
    ...rateColumns(rateLimits),
  };
}

function getAndChange(
  options: KeyServiceOptions,
): Pick<Rpcs, "getKey" | "getCurrentKey" | "updateKey" | "enableKey" | "disableKey" | "deleteKey"> {
  const { orm } = options;
  const { messageOf } = createKeyMessages(orm, options);
  const change =
    (action: KeyAction): Rpcs["enableKey"] & Rpcs["disableKey"] & Rpcs["deleteKey"] =>
    async ({ keyId }, { values }) => {
      const apply = (row: KeyRow): void => takeAction(row, action);
      const wanted = { keyId, values, action: `key.${action}`, apply };
      return { key: await messageOf(await changeKey(options, wanted)) };
    };
  return {
    async getKey({ keyId }, { values }) {
      const row = isUuid(keyId)
        ? await mapDatabaseLoss(orm.em.fork().findOne(ApiKeyEntity, { id: keyId }))
        : null;
      return { key: await messageOf(requireOwn(values.get(callerKey), row)) };
    },

    async getCurrentKey(_, { values }) {
      const { keyId: id } = admitCaller(values.get(callerKey), "Send the API key to read");
      const row = await mapDatabaseLoss(orm.em.fork().findOne(ApiKeyEntity, { id }));
      if (row === null) throw noSuchKey();
      return { key: await messageOf(row) };
    },

    async updateKey(request, { values }) {
      const changed: ChangedKey = readKeyChange(request);
      const keyId = request.key?.keyId ?? "";
      const apply = (row: KeyRow): void => {
        if (row.state === KeyState.DELETED) throw keyIsDeleted();
        Object.assign(row, changed);
      };
      const budgets = readBudgets(options, request);
      const wanted = { keyId, values, action: "key.update", apply, budgets };
      return { key: await messageOf(await changeKey(options, wanted)) };
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
  /**
   * Changes the row.
   *
   * @throws GatewayError if the change is not allowed
   */
  readonly apply: (row: KeyRow) => void;
  /** The new budgets. Unchanged by default. */
  readonly budgets?: readonly Budget[] | undefined;
}

/**
 * The budgets that an UpdateKey request changes; undefined if it changes none.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function readBudgets(
  { budgets }: KeyServiceOptions,
  { key, updateMask }: UpdateKeyRequest,
): readonly Budget[] | undefined {
  if (!membersOf(updateMask).has("budgets")) return undefined;
  return budgets.check(key?.budgets ?? []);
}

/** Changes a key under its row lock, so that concurrent changes see each other. */
function changeKey({ orm, budgets }: KeyServiceOptions, change: Change): Promise<KeyRow> {
  const { keyId, values, action, apply, budgets: wanted } = change;
  const caller = values.get(callerKey);
  if (!isUuid(keyId)) return Promise.reject(noSuchKey());
  const work = orm.em.fork().transactional(async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }, lock));
    const { accountId } = row;
    const present = wanted && ((await budgets.of([keyId])).get(keyId) ?? []);
    const before = { ...factsOf(row), ...budgetFacts(present) };
    apply(row);
    await em.flush();
    const after = { ...factsOf(row), ...budgetFacts(wanted) };
    const changed = changedFacts(before, after);
    await recordAction(em, values, { action, accountId, subject: keyId, ...changed });
    if (wanted) await budgets.set(em, { accountId, ownerId: keyId, budgets: wanted });
    // A trigger may have set delete_time. Read the row again: refresh() returns amounts as texts.
    em.clear();
    return requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }));
  });
  return mapDatabaseLoss(work);
}

/** The facts of a key for the operator log. */
function factsOf(row: KeyRow): Facts {
  const { name, masked, state, models, expireTime, spendLimit, rpm, tpm, concurrency } = row;
  const word = stateWords[state as StoredKeyState];
  const rates = { rpm, tpm, concurrency };
  return { name, masked, state: word, models, expireTime, spendLimit, ...rates };
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

/** Refuses another account's key as not found, so that callers cannot probe for keys. */
function requireOwn(caller: Caller | undefined, row: KeyRow | null): KeyRow {
  if (row === null || !maySeeAccount(caller, row.accountId)) throw noSuchKey();
  return row;
}

/** The changed members of a key and their new values. */
type ChangedKey = Partial<
  Pick<KeyRow, "name" | "models" | "expireTime" | "spendLimit" | "rpm" | "tpm" | "concurrency">
>;

/** Reads the changes of an UpdateKey request. */
export function readKeyChange({ key, updateMask }: UpdateKeyRequest): ChangedKey {
  const members = membersOf(updateMask);
  return {
    ...(members.has("name") && { name: key?.name.trim() ?? "" }),
    ...(members.has("models") && { models: modelList(key?.models ?? []) }),
    ...(members.has("expire_time") && { expireTime: dateOf(key?.expireTime) }),
    ...(members.has("spend_limit") && { spendLimit: nanosOf(key?.spendLimit) }),
    ...(members.has("rate_limits") && rateColumns(key?.rateLimits)),
  };
}

/** Null: the key never expires. */
function dateOf(time: Timestamp | undefined): Date | null {
  return time === undefined ? null : timestampDate(time);
}

/** In nano-USD. Null if the key has no limit. */
function nanosOf(limit: Money | undefined): bigint | null {
  return limit?.amountNanos ?? null;
}
