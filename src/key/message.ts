/** Converts keys to messages of the contract. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { InferEntity } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { KeySchema, type Key } from "../../gen/uas/key/v1/key_pb.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import type { Budgets } from "../core/budgets.ts";
import { money } from "../core/money.ts";
import { rateMember } from "../core/rate-limits.ts";
import type { KeyCopies } from "./copies.ts";
import { KeyUseEntity, type ApiKeyEntity } from "./entity.ts";
import type { StoredKeyState } from "./state.ts";

/** A stored key. */
export type KeyRow = InferEntity<typeof ApiKeyEntity>;

/** Returns the total spending of keys, in nano-USD. Keys without spending are omitted. */
export type SpentOf = (keyIds: readonly string[]) => Promise<ReadonlyMap<string, bigint>>;

/** Converts keys, with facts from other tables. */
interface KeyMessages {
  /** Messages in the order of the rows. */
  readonly messagesOf: (rows: readonly KeyRow[]) => Promise<Key[]>;
  readonly messageOf: (row: KeyRow) => Promise<Key>;
}

/** Sources of those facts. */
interface KeyKnowledge {
  readonly spentOf: SpentOf;
  readonly budgets: Pick<Budgets, "of">;
  readonly copies: Pick<KeyCopies, "keptOf">;
}

/** Creates the converter. */
export function createKeyMessages(orm: MikroORM, known: KeyKnowledge): KeyMessages {
  const { spentOf, copies } = known;
  const { of: budgetsOf } = known.budgets;
  const messagesOf = async (rows: readonly KeyRow[]): Promise<Key[]> => {
    const ids = rows.map(({ id }) => id);
    const uses = orm.em.fork().find(KeyUseEntity, { keyId: { $in: ids } });
    const [spent, budgets, used, kept] = await Promise.all([
      spentOf(ids),
      budgetsOf(ids),
      mapDatabaseLoss(uses),
      copies.keptOf(ids),
    ]);
    const useTimes = new Map(used.map(({ keyId, useTime }) => [keyId, useTime]));
    return rows.map((row) => {
      const message = keyMessage(row, spent.get(row.id) ?? 0n, useTimes.get(row.id));
      message.canReveal = kept.has(row.id);
      message.budgets = [...(budgets.get(row.id) ?? [])];
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
    ...rateMember(row),
    ...(expireTime && { expireTime: timestampFromDate(expireTime) }),
    ...(deleteTime && { deleteTime: timestampFromDate(deleteTime) }),
    ...(useTime && { lastUseTime: timestampFromDate(useTime) }),
  });
}

/**
 * Trims and deduplicates a list of model keys. The models need not exist, since the configuration
 * may change.
 *
 * @returns null for an empty list, which means every model
 */
export function modelList(models: readonly string[]): string[] | null {
  return models.length === 0 ? null : [...new Set(models.map((model) => model.trim()))];
}
