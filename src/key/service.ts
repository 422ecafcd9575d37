/** The RPCs of API keys. */
import { randomUUIDv7 } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { type InferEntity, LockMode } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { type Key, KeySchema, KeyState } from "../../gen/uas/key/v1/key_pb.ts";
import type { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { maySeeAccount, noSuchAccount, parseAccountId } from "../account/access.ts";
import { parseDisplayName } from "../account/display-name.ts";
import { type Caller, callerKey } from "../caller.ts";
import { answering } from "../database-lost.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { cutPage, readPage } from "../page-token.ts";
import { isUuid } from "../uuid.ts";
import { ApiKeyEntity } from "./entity.ts";
import { parseModelList } from "./model-list.ts";
import { digestBytes, digestSecret, maskSecret, newSecret } from "./secret.ts";
import { type KeyAction, keyTransitions, type StoredKeyState } from "./state.ts";

/** What {@link createKeyService} needs. */
export interface KeyServiceOptions {
  readonly orm: MikroORM;
  /** Whether there is such an account. The account room knows. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
}

type Rpcs = ServiceImpl<typeof KeyService>;

/** Makes the implementation of `uas.key.v1.KeyService`. */
export function createKeyService({ orm, accountExists }: KeyServiceOptions): Rpcs {
  return { ...listAndCreate(orm, accountExists), ...getAndChange(orm) };
}

function listAndCreate(
  orm: MikroORM,
  accountExists: KeyServiceOptions["accountExists"],
): Pick<Rpcs, "listKeys" | "createKey"> {
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
      return { keys: items.map(keyMessage), nextPageToken };
    },

    async createKey(request, { values }) {
      const name = parseDisplayName(request.name, 0);
      const models = parseModelList(request.models);
      const accountId = await requireAccount(values.get(callerKey), request.accountId);
      const secret = newSecret();
      const em = orm.em.fork();
      const row = em.create(ApiKeyEntity, {
        id: randomUUIDv7(),
        accountId,
        name,
        digest: digestBytes(digestSecret(secret)),
        masked: maskSecret(secret),
        models,
        state: KeyState.ENABLED,
      });
      await answering(em.flush());
      return { key: keyMessage(row), secret };
    },
  };
}

function getAndChange(
  orm: MikroORM,
): Pick<Rpcs, "getKey" | "enableKey" | "disableKey" | "deleteKey"> {
  const change =
    (action: KeyAction): Rpcs["enableKey"] & Rpcs["disableKey"] & Rpcs["deleteKey"] =>
    async ({ keyId }, { values }) => ({
      key: keyMessage(await changeState(orm, { action, keyId, caller: values.get(callerKey) })),
    });
  return {
    async getKey({ keyId }, { values }) {
      const row = isUuid(keyId)
        ? await answering(orm.em.fork().findOne(ApiKeyEntity, { id: keyId }))
        : null;
      return { key: keyMessage(requireOwn(values.get(callerKey), row)) };
    },
    enableKey: change("enable"),
    disableKey: change("disable"),
    deleteKey: change("delete"),
  };
}

interface Change {
  readonly action: KeyAction;
  readonly keyId: string;
  readonly caller: Caller | undefined;
}

/** Under the row's lock: of two changes at once the second one sees the first. */
function changeState(orm: MikroORM, { action, keyId, caller }: Change): Promise<KeyRow> {
  if (!isUuid(keyId)) return Promise.reject(noSuchKey());
  const work = orm.em.fork().transactional(async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = requireOwn(caller, await em.findOne(ApiKeyEntity, { id: keyId }, lock));
    const next = keyTransitions[action][row.state as StoredKeyState];
    if (next === undefined) throw keyIsDeleted();
    if (next !== row.state) {
      row.state = next;
      await em.flush();
      // The database has set delete_time.
      await em.refresh(row);
    }
    return row;
  });
  return answering(work);
}

type KeyRow = InferEntity<typeof ApiKeyEntity>;

/** Somebody else's key is not found, as one that does not exist: nobody learns which do. */
function requireOwn(caller: Caller | undefined, row: KeyRow | null): KeyRow {
  if (row === null || !maySeeAccount(caller, row.accountId)) throw noSuchKey();
  return row;
}

function noSuchKey(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such key: check key_id");
}

function keyIsDeleted(): GatewayError {
  const text = "this key is deleted, which is final: create another one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}

function keyMessage(row: KeyRow): Key {
  return create(KeySchema, {
    keyId: row.id,
    accountId: row.accountId,
    name: row.name,
    masked: row.masked,
    state: row.state as StoredKeyState,
    models: row.models ?? [],
    createTime: timestampFromDate(row.createTime),
    ...(row.deleteTime && { deleteTime: timestampFromDate(row.deleteTime) }),
  });
}
