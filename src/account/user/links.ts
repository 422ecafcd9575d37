/** One-time links that sign a user in. */
import type { Pool, PoolClient } from "pg";
import { signInLinkMs } from "../../config/sign-in-limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { transact } from "../../db/transaction.ts";
import { digestToken, isToken, newToken } from "../session/store.ts";

/** A link that was made. */
export interface NewLink {
  readonly token: string;
  readonly expireTime: Date;
}

/** The links of all users. */
export interface Links {
  /** Replaces the one that the user had. @param also what is done in the same transaction */
  create(userId: string, also: (client: PoolClient) => Promise<void>): Promise<NewLink>;
  /** Uses a link up. Returns whom it signs in; `undefined`: it is none, or used, or has expired. */
  use(token: string): Promise<string | undefined>;
}

const sql = {
  create: `insert into sign_in_link (user_id, digest, expire_time)
    values ($1, $2, now() + interval '${signInLinkMs} ms')
    on conflict (user_id) do update set digest = excluded.digest, expire_time = excluded.expire_time
    returning expire_time`,
  use: `delete from sign_in_link where digest = $1
    returning user_id, expire_time > now() as is_live`,
} as const;

/** Makes the store. */
export function createLinks(pool: Pool): Links {
  return {
    async create(userId, also) {
      const token = newToken();
      const values = [userId, digestToken(token)];
      const expireTime = await transact(pool, async (client) => {
        const [row] = (await client.query<{ expire_time: Date }>(sql.create, values)).rows;
        if (row === undefined) throw new Error("unreachable");
        await also(client);
        return row.expire_time;
      });
      return { token, expireTime };
    },
    async use(token) {
      if (!isToken(token)) return undefined;
      const query = pool.query<{ user_id: string; is_live: boolean }>(sql.use, [
        digestToken(token),
      ]);
      const [row] = (await mapDatabaseLoss(query)).rows;
      return row?.is_live ? row.user_id : undefined;
    },
  };
}
