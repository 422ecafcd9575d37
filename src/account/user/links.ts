/** One-time sign-in links. */
import { raw } from "@mikro-orm/core";
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import { signInLinkMs } from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { transact } from "../../db/pool/transaction.ts";
import { SignInLinkEntity } from "../entity.ts";
import { digestToken, isToken, newToken } from "../session/store.ts";

/** A created link. */
export interface NewLink {
  readonly token: string;
  readonly expireTime: Date;
}

/** The links of all users. */
export interface Links {
  /** Replaces the user's link. @param also runs in the same transaction */
  create(userId: string, also: (em: EntityManager) => Promise<void>): Promise<NewLink>;
  /**
   * Consumes a link. Returns the user whom it signs in; undefined if it is unknown, used or
   * expired.
   */
  use(token: string): Promise<string | undefined>;
}

/** Creates the store. All times are the database's. */
export function createLinks(orm: MikroORM): Links {
  return {
    create(userId, also) {
      const token = newToken();
      const expireTime = raw<Date>(`now() + interval '${signInLinkMs} ms'`);
      return transact(orm, async (em) => {
        const link = { userId, digest: digestToken(token), expireTime };
        const insert = em.createQueryBuilder(SignInLinkEntity).insert(link);
        await insert.onConflict("userId").merge(["digest", "expireTime"]).execute();
        const made = await em.findOneOrFail(SignInLinkEntity, { userId });
        await also(em);
        return { token, expireTime: made.expireTime };
      });
    },
    async use(token) {
      if (!isToken(token)) return undefined;
      const em = orm.em.fork();
      const digest = digestToken(token);
      const link = await mapDatabaseLoss(em.findOne(SignInLinkEntity, { digest }));
      if (link === null) return undefined;
      // Of several concurrent uses, one deletes it.
      const alive = { digest, expireTime: { $gt: raw<Date>("now()") } };
      const used = await mapDatabaseLoss(em.nativeDelete(SignInLinkEntity, alive));
      return used === 1 ? link.userId : undefined;
    },
  };
}
