/** The sessions of the console: opened, found by their token, rotated, ended. All times are the database's. */
import { hash, randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Pool, PoolClient } from "pg";
import {
  SignInMethod as Method,
  SessionSchema,
  type SignInMethod,
  type Session,
} from "../../../gen/uas/account/v1/session_pb.ts";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import {
  linkProofMs,
  sessionIdleMs,
  sessionMs,
  sessionOverlapMs,
  sessionSeenMs,
  sessionsMax,
} from "../../config/sign-in-limits.ts";
import type { Visit } from "../../core/browser-session.ts";
import { anonymous, type Caller, type SessionRef } from "../../core/caller.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { newId } from "../../core/uuid.ts";
import { transact } from "../../db/transaction.ts";

/** A stored session. */
interface SessionRow {
  readonly id: string;
  readonly user_id: string;
  readonly method: SignInMethod;
  readonly create_time: Date;
  readonly seen_time: Date;
  readonly expire_time: Date;
  readonly ip_address: string;
  readonly user_agent: string;
}

/** Which of a user's sessions to list. */
interface SessionPage {
  readonly userId: string;
  /** The id of the last session of the page before. */
  readonly after: string | undefined;
  readonly limit: number;
}

/** The sessions of all users. */
export interface Sessions {
  /** Who presents a token; nobody in particular where it is of no session that lives. */
  identify(token: string): Promise<Caller>;
  /** Signs a user in: a new session and a new token, which the visit keeps. What its browser had before ends. */
  open(visit: Visit, userId: string, method: SignInMethod): Promise<SessionRow>;
  /** Gives a session another token, which the visit keeps. */
  rotate(visit: Visit, sessionId: string): Promise<void>;
  /** `undefined`: it has ended. */
  get(sessionId: string): Promise<SessionRow | undefined>;
  /** Newest first. */
  list(page: SessionPage): Promise<SessionRow[]>;
  /** Ends a session of a user. */
  end(sessionId: string, userId: string): Promise<void>;
  /** Ends a session, whosever it is. @param also what is done in the same transaction, where there was one */
  endAny(
    sessionId: string,
    also: (client: PoolClient, userId: string) => Promise<void>,
  ): Promise<void>;
  /** Ends all of a user but one. Returns how many that were. */
  endOthers(userId: string, sessionId: string | undefined): Promise<number>;
}

const columns = `s.id, s.user_id, s.method, s.create_time, s.seen_time, s.expire_time, s.ip_address, s.user_agent`;

/** A condition on a session `s`. */
const livingSql = `(s.expire_time > now() and s.seen_time > now() - interval '${sessionIdleMs} ms')`;

const sql = {
  find: `select s.id, s.user_id, u.account_id, u.role,
      s.method = ${Method.LINK} and s.create_time > now() - interval '${linkProofMs} ms' as is_fresh_link,
      s.seen_time < now() - interval '${sessionSeenMs} ms' as is_stale
    from console_session s join console_user u on u.id = s.user_id
    where (s.digest = $1
        or (s.previous = $1 and s.rotate_time > now() - interval '${sessionOverlapMs} ms'))
      and ${livingSql}`,
  see: `update console_session set seen_time = now() where id = $1`,
  open: `insert into console_session as s
      (id, user_id, digest, method, ip_address, user_agent, expire_time)
    values ($1, $2, $3, $4, $5, $6, now() + interval '${sessionMs} ms') returning ${columns}`,
  forget: `delete from console_session where digest = $1 or previous = $1`,
  trim: `delete from console_session where user_id = $1 and id not in
    (select id from console_session where user_id = $1 order by id desc limit ${sessionsMax})`,
  signedIn: `update console_user set sign_in_time = now() where id = $1`,
  rotate: `update console_session set previous = digest, rotate_time = now(), digest = $2
    where id = $1 returning extract(epoch from expire_time - now())::float8 * 1000 as left_ms`,
  get: `select ${columns} from console_session s where s.id = $1 and ${livingSql}`,
  list: `select ${columns} from console_session s
    where s.user_id = $1 and ($2::uuid is null or s.id < $2) and ${livingSql}
    order by s.id desc limit $3`,
  end: `delete from console_session where id = $1 and user_id = $2`,
  endAny: `delete from console_session where id = $1 returning user_id`,
  endOthers: `delete from console_session where user_id = $1 and ($2::uuid is null or id <> $2)`,
} as const;

interface FoundRow {
  readonly id: string;
  readonly user_id: string;
  readonly account_id: string;
  readonly role: number;
  readonly is_fresh_link: boolean;
  readonly is_stale: boolean;
}

/** The longest name of a browser that is kept, in characters. */
const userAgentCharsMax = 200;

/** Makes the store. */
export function createSessions(pool: Pool): Sessions {
  const query = async <Row extends object>(text: string, values: unknown[]): Promise<Row[]> =>
    (await mapDatabaseLoss(pool.query<Row>(text, values))).rows;
  const count = async (text: string, values: unknown[]): Promise<number> =>
    (await mapDatabaseLoss(pool.query(text, values))).rowCount ?? 0;
  return {
    async identify(token) {
      if (!isToken(token)) return anonymous;
      const [row] = await query<FoundRow>(sql.find, [digestToken(token)]);
      if (row === undefined) return anonymous;
      if (row.is_stale) await count(sql.see, [row.id]);
      return callerOf(row);
    },

    async open(visit, userId, method) {
      const token = newToken();
      const { ipAddress, userAgent } = visit;
      const agent = userAgent.slice(0, userAgentCharsMax);
      if (visit.token !== undefined) await count(sql.forget, [digestToken(visit.token)]);
      const values = [newId(), userId, digestToken(token), method, ipAddress, agent];
      const [row] = await query<SessionRow>(sql.open, values);
      if (row === undefined) throw new Error("unreachable");
      await count(sql.trim, [userId]);
      await count(sql.signedIn, [userId]);
      visit.keep(token, sessionMs);
      return row;
    },

    async rotate(visit, sessionId) {
      const token = newToken();
      const values = [sessionId, digestToken(token)];
      const [row] = await query<{ readonly left_ms: number }>(sql.rotate, values);
      if (row !== undefined) visit.keep(token, row.left_ms);
    },

    get: async (sessionId) => (await query<SessionRow>(sql.get, [sessionId]))[0],
    list: ({ userId, after, limit }) => query<SessionRow>(sql.list, [userId, after ?? null, limit]),
    end: async (sessionId, userId) => void (await count(sql.end, [sessionId, userId])),
    endAny: (sessionId, also) =>
      transact(pool, async (client) => {
        const ended = await client.query<{ user_id: string }>(sql.endAny, [sessionId]);
        for (const row of ended.rows) await also(client, row.user_id);
      }),
    endOthers: (userId, sessionId) => count(sql.endOthers, [userId, sessionId ?? null]),
  };
}

function callerOf({ id, user_id, account_id, role, is_fresh_link }: FoundRow): Caller {
  const session: SessionRef = {
    sessionId: id,
    userId: user_id,
    accountId: account_id,
    isFreshLink: is_fresh_link,
  };
  if (role === UserRole.OPERATOR) return { kind: "operator", session };
  return { kind: "session", accountId: account_id, session };
}

/* The secrets that cookies and links hold. */

const form = /^[A-Za-z0-9_-]{43}$/;

/** Makes one: 32 random bytes as 43 characters. */
export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Whether a text has the form of one: what has not needs no look-up. */
export function isToken(text: string): boolean {
  return form.test(text);
}

/** What is stored of one: its SHA-256. A plain hash is enough for 256 random bits. */
export function digestToken(token: string): Buffer {
  return Buffer.from(hash("sha256", token, "hex"), "hex");
}

/* Sessions as messages of the contract. */

/** @param currentId the session that asks; `undefined`: none does */
export function sessionMessage(row: SessionRow, currentId: string | undefined): Session {
  return create(SessionSchema, {
    sessionId: row.id,
    userId: row.user_id,
    method: row.method,
    createTime: timestampFromDate(row.create_time),
    seenTime: timestampFromDate(row.seen_time),
    expireTime: timestampFromDate(row.expire_time),
    ipAddress: row.ip_address,
    userAgent: row.user_agent,
    isCurrent: row.id === currentId,
  });
}
