/** Keys as messages of the contract. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { InferEntity } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { KeySchema, type Key } from "../../gen/uas/key/v1/key_pb.ts";
import { answering } from "../core/database-lost.ts";
import { money } from "../core/money.ts";
import type { KeyCopies } from "./copies.ts";
import { KeyUseEntity, type ApiKeyEntity } from "./entity.ts";
import type { StoredKeyState } from "./state.ts";

/** A stored key. */
export type KeyRow = InferEntity<typeof ApiKeyEntity>;

/** What each of these keys has spent, in nano-USD; one that is left out has spent nothing. */
export type SpentOf = (keyIds: readonly string[]) => Promise<ReadonlyMap<string, bigint>>;

/** Writes keys with what other tables know of them. */
interface KeyMessages {
  /** In the same order. */
  readonly messagesOf: (rows: readonly KeyRow[]) => Promise<Key[]>;
  readonly messageOf: (row: KeyRow) => Promise<Key>;
}

/** What other rooms and tables know of keys. */
interface KeyKnowledge {
  readonly spentOf: SpentOf;
  readonly copies: Pick<KeyCopies, "keptOf">;
}

/** Makes the writer over a database. */
export function createKeyMessages(orm: MikroORM, { spentOf, copies }: KeyKnowledge): KeyMessages {
  const messagesOf = async (rows: readonly KeyRow[]): Promise<Key[]> => {
    const ids = rows.map(({ id }) => id);
    const uses = orm.em.fork().find(KeyUseEntity, { keyId: { $in: ids } });
    const known = [spentOf(ids), answering(uses), copies.keptOf(ids)] as const;
    const [spent, used, kept] = await Promise.all(known);
    const useTimes = new Map(used.map(({ keyId, useTime }) => [keyId, useTime]));
    return rows.map((row) => {
      const message = keyMessage(row, spent.get(row.id) ?? 0n, useTimes.get(row.id));
      message.canReveal = kept.has(row.id);
      return message;
    });
  };
  return {
    messagesOf,
    async messageOf(row) {
      const [message] = await messagesOf([row]);
      if (message === undefined) throw new Error("unreachable");
      return message;
    },
  };
}

function keyMessage(row: KeyRow, spentNanos: bigint, useTime: Date | undefined): Key {
  const { models, spendLimit, expireTime, deleteTime } = row;
  return create(KeySchema, {
    keyId: row.id,
    accountId: row.accountId,
    name: row.name,
    masked: row.masked,
    state: row.state as StoredKeyState,
    models: models ?? [],
    createTime: timestampFromDate(row.createTime),
    spent: money(spentNanos),
    ...(spendLimit != null && { spendLimit: money(spendLimit) }),
    ...(expireTime && { expireTime: timestampFromDate(expireTime) }),
    ...(deleteTime && { deleteTime: timestampFromDate(deleteTime) }),
    ...(useTime && { lastUseTime: timestampFromDate(useTime) }),
  });
}

/**
 * Trims and deduplicates the models that a key may use. Whether such models exist is not asked: they come and go with
 * the configuration.
 *
 * @returns `null` where the list is empty: every model.
 */
export function modelList(models: readonly string[]): string[] | null {
  return models.length === 0 ? null : [...new Set(models.map((model) => model.trim()))];
}
