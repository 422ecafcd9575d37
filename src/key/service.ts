/** The RPCs of API keys. */
import type { ServiceImpl } from "@connectrpc/connect";
import { LockMode } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { maySeeAccount, noSuchAccount, parseAccountId } from "../account/access.ts";
import { parseDisplayName } from "../account/display-name.ts";
import { type Caller, callerKey } from "../caller.ts";
import { answering } from "../database-lost.ts";
import { cutPage, readPage } from "../page-token.ts";
import type { RequireStepUp } from "../visit.ts";
import { isUuid, newId } from "../uuid.ts";
import { type ChangedKey, parseExpiry, parseLimit, readKeyChange } from "./change.ts";
import type { KeyCopies } from "./copies.ts";
import { ApiKeyEntity, KeyCopyEntity } from "./entity.ts";
import { createKeyMessages, type KeyRow, type SpentOf } from "./message.ts";
import { parseModelList } from "./model-list.ts";
import { keyIsDeleted, noSuchKey } from "./refusals.ts";
import { createRevealRpc, type RevealedKey } from "./reveal.ts";
import { digestBytes, digestSecret, maskSecret, newSecret } from "./secret.ts";
import { type KeyAction, keyTransitions, type StoredKeyState } from "./state.ts";

/** What {@link createKeyService} needs. */
export interface KeyServiceOptions {
  readonly orm: MikroORM;
  /** Whether there is such an account. The account room knows. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** What keys have spent. Billing knows. */
  readonly spentOf: SpentOf;
  readonly copies: KeyCopies;
  /** What a session needs beside itself. */
  readonly requireStepUp: RequireStepUp;
  /** Told of each key that was shown again. Default: nobody. */
  readonly onReveal?: (facts: RevealedKey) => void;
}

type Rpcs = ServiceImpl<typeof KeyService>;

/** Makes the implementation of `uas.key.v1.KeyService`. */
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
      const rows = await answering(
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
      const name = parseDisplayName(request.name, 0);
      const models = parseModelList(request.models);
      const expireTime = parseExpiry(request.expireTime);
      const spendLimit = parseLimit(request.spendLimit);
      const accountId = await requireAccount(values.get(callerKey), request.accountId);
      const secret = newSecret();
      const em = orm.em.fork();
      const row = em.create(ApiKeyEntity, {
        id: newId(),
        accountId,
        name,
        digest: digestBytes(digestSecret(secret)),
        masked: maskSecret(secret),
        models,
        state: KeyState.ENABLED,
        expireTime,
        spendLimit,
      });
      const sealed = await copies.seal(accountId, row.id, secret);
      if (sealed !== undefined) em.create(KeyCopyEntity, { keyId: row.id, accountId, sealed });
      await answering(em.flush());
      return { key: await messageOf(row), secret };
    },
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
      const caller = values.get(callerKey);
      return { key: await messageOf(await changeKey(orm, { keyId, caller, apply })) };
    };
  return {
    async getKey({ keyId }, { values }) {
      const row = isUuid(keyId)
        ? await answering(orm.em.fork().findOne(ApiKeyEntity, { id: keyId }))
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
      const caller = values.get(callerKey);
      return { key: await messageOf(await changeKey(orm, { keyId, caller, apply })) };
    },
    enableKey: change("enable"),
    disableKey: change("disable"),
    deleteKey: change("delete"),
  };
}

interface Change {
  readonly keyId: string;
  readonly caller: Caller | undefined;
  /** Changes the row. @throws GatewayError where it must not be changed so */
  readonly apply: (row: KeyRow) => void;
}

/** Under the row's lock: of two changes at once the second one sees the first. */
function changeKey(orm: MikroORM, { keyId, caller, apply }: Change): Promise<KeyRow> {
  if (!isUuid(keyId)) return Promise.reject(noSuchKey());
  const work = orm.em.fork().transactional(async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    apply(requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }, lock)));
    await em.flush();
    // The database may have set delete_time. Read afresh: refresh() gives amounts as texts.
    em.clear();
    return requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }));
  });
  return answering(work);
}

function takeAction(row: KeyRow, action: KeyAction): void {
  const next = keyTransitions[action][row.state as StoredKeyState];
  if (next === undefined) throw keyIsDeleted();
  row.state = next;
}

/** Somebody else's key is not found, as one that does not exist: nobody learns which do. */
function requireOwn(caller: Caller | undefined, row: KeyRow | null): KeyRow {
  if (row === null || !maySeeAccount(caller, row.accountId)) throw noSuchKey();
  return row;
}
