/**
 * Console sessions. SQL for the look-up of a token, on every request of the console, and for its
 * replacement.
 *
 * Sessions are opened, found by token, rotated, ended. All times are the database's.
 */
import { hash, randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type InferEntity, raw } from "@mikro-orm/core";
import type { EntityManager } from "@mikro-orm/postgresql";
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
} from "../../core/limits.ts";
import type { BrowserSession } from "../../core/browser-session.ts";
import { anonymous, type Caller, type SessionRef } from "../../core/caller.ts";
import type { Clock } from "../../core/clock.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import type { Database } from "../../db/database.ts";
import type { RowOf } from "../../db/row.ts";
import { transact } from "../../db/pool/transaction.ts";
import { SessionEntity, UserEntity } from "../entity.ts";

/** A stored session. */
type SessionRow = InferEntity<typeof SessionEntity>;

/** A user, with the secrets that were checked. */
type ProvenUser = Pick<InferEntity<typeof UserEntity>, "id" | "passwordHash" | "totp">;

/** A page of a user's sessions. */
interface SessionPage {
  readonly userId: string;
  /** The id of the previous page's last session. */
  readonly after: string | undefined;
  readonly limit: number;
}

/** The sessions of all users. */
export interface Sessions {
  /** Identifies the owner of a token; anonymous if the session has ended. */
  identify(token: string): Promise<Caller>;
  /**
   * Signs a user in: creates a session and sets its cookie. An earlier session of the browser ends.
   *
   * @param user as it was when its proofs were checked
   * @throws GatewayError UNAUTHENTICATED if its password or authenticator has changed since
   */
  open(visit: BrowserSession, user: ProvenUser, method: SignInMethod): Promise<SessionRow>;
  /** Gives a session a new token and sets its cookie. */
  rotate(visit: BrowserSession, sessionId: string): Promise<void>;
  /** Undefined if it has ended. */
  get(sessionId: string): Promise<SessionRow | undefined>;
  /** Newest first. */
  list(page: SessionPage): Promise<SessionRow[]>;
  /** Ends a session of a user. */
  end(sessionId: string, userId: string): Promise<void>;
  /**
   * Ends any session.
   *
   * @param also runs in the same transaction, if the session existed
   */
  endAny(
    sessionId: string,
    also: (em: EntityManager, userId: string) => Promise<void>,
  ): Promise<void>;
  /** Ends all sessions of a user but one. Returns their number. */
  endOthers(userId: string, sessionId: string | undefined): Promise<number>;
}

const sql = {
  find: `select s.id, s.user_id, u.account_id, u.role,
      s.method = ${Method.LINK} and s.create_time > now() - interval '${linkProofMs} ms' as is_fresh_link,
      s.seen_time < now() - interval '${sessionSeenMs} ms' as is_stale
    from console_session s join console_user u on u.id = s.user_id
    where (s.digest = $1
        or (s.previous = $1 and s.rotate_time > now() - interval '${sessionOverlapMs} ms'))
      and s.expire_time > now() and s.seen_time > now() - interval '${sessionIdleMs} ms'`,
  see: `update console_session set seen_time = now() where id = $1`,
  rotate: `update console_session set previous = digest, rotate_time = now(), digest = $2
    where id = $1 returning extract(epoch from expire_time - now())::float8 * 1000 as left_ms`,
} as const;

/** A condition on a session: it has neither expired nor been idle for too long. */
function living() {
  return {
    expireTime: { $gt: raw<Date>("now()") },
    seenTime: { $gt: raw<Date>(`now() - interval '${sessionIdleMs} ms'`) },
  };
}

type FoundRow = RowOf<typeof SessionEntity, "id" | "user_id"> &
  RowOf<typeof UserEntity, "account_id" | "role"> & {
    readonly is_fresh_link: boolean;
    readonly is_stale: boolean;
  };

/** Longest browser name that is stored, in characters. */
const userAgentCharsMax = 200;

/** Creates the store. */
export function createSessions(
  { orm, pool }: Pick<Database, "orm" | "pool">,
  newId: Clock["newId"],
): Sessions {
  return {
    async identify(token) {
      if (!isToken(token)) return anonymous;
      const found = await mapDatabaseLoss(pool.query<FoundRow>(sql.find, [digestToken(token)]));
      const [row] = found.rows;
      if (row === undefined) return anonymous;
      if (row.is_stale) await mapDatabaseLoss(pool.query(sql.see, [row.id]));
      return callerOf(row);
    },

    async open(visit, user, method) {
      const token = newToken();
      const session = { id: newId(), digest: digestToken(token), userId: user.id, method };
      const row = await transact(orm, async (em) => {
        const opened = await openIn(em, session, visit);
        await noteSignIn(em, user);
        return opened;
      });
      visit.keep(token, sessionMs);
      return row;
    },

    async rotate(visit, sessionId) {
      const token = newToken();
      const values = [sessionId, digestToken(token)];
      const rotated = await mapDatabaseLoss(pool.query<{ left_ms: number }>(sql.rotate, values));
      const [row] = rotated.rows;
      if (row !== undefined) visit.keep(token, row.left_ms);
    },

    async get(id) {
      const where = { id, ...living() };
      return (await mapDatabaseLoss(orm.em.fork().findOne(SessionEntity, where))) ?? undefined;
    },
    list({ userId, after, limit }) {
      const where = { userId, ...(after !== undefined && { id: { $lt: after } }), ...living() };
      const newest = { orderBy: { id: "desc" }, limit } as const;
      return mapDatabaseLoss(orm.em.fork().find(SessionEntity, where, newest));
    },
    async end(id, userId) {
      await mapDatabaseLoss(orm.em.fork().nativeDelete(SessionEntity, { id, userId }));
    },
    endAny: (id, also) =>
      transact(orm, async (em) => {
        const session = await em.findOne(SessionEntity, { id });
        const ended = await em.nativeDelete(SessionEntity, { id });
        if (session !== null && ended > 0) await also(em, session.userId);
      }),
    endOthers(userId, sessionId) {
      const where = { userId, ...(sessionId !== undefined && { id: { $ne: sessionId } }) };
      return mapDatabaseLoss(orm.em.fork().nativeDelete(SessionEntity, where));
    },
  };
}

/**
 * Opens a session. Ends the browser's earlier session, and the oldest sessions of a user with too
 * many.
 */
async function openIn(
  em: EntityManager,
  session: Pick<SessionRow, "id" | "digest" | "userId" | "method">,
  { token, ipAddress, userAgent }: BrowserSession,
): Promise<SessionRow> {
  const { id, userId } = session;
  if (token !== undefined) {
    const digest = digestToken(token);
    await em.nativeDelete(SessionEntity, { $or: [{ digest }, { previous: digest }] });
  }
  await em.insert(SessionEntity, {
    ...session,
    ipAddress,
    userAgent: userAgent.slice(0, userAgentCharsMax),
    expireTime: raw<Date>(`now() + interval '${sessionMs} ms'`),
  });
  // The other sessions by their ids. This one is excluded, because the clock may have been ahead
  // when the others were created.
  const tooMany = { orderBy: { id: "desc" }, offset: sessionsMax - 1, limit: 1 } as const;
  const [newestToEnd] = await em.find(SessionEntity, { userId, id: { $ne: id } }, tooMany);
  if (newestToEnd !== undefined) {
    await em.nativeDelete(SessionEntity, { userId, id: { $lte: newestToEnd.id, $ne: id } });
  }
  return em.findOneOrFail(SessionEntity, { id });
}

/**
 * A change of the password or the authenticator ends all sessions that it finds. Sessions that are
 * not yet visible to it end here: either this update waits for the change and fails, or the change
 * waits for this session.
 */
async function noteSignIn(
  em: EntityManager,
  { id, passwordHash = null, totp = null }: ProvenUser,
): Promise<void> {
  const signInTime = raw<Date>("now()");
  if ((await em.nativeUpdate(UserEntity, { id, passwordHash, totp }, { signInTime })) === 1) return;
  throw new GatewayError(
    ErrorCode.UNAUTHENTICATED,
    "the password or the authenticator has just been changed: sign in again",
  );
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

const form = /^[A-Za-z0-9_-]{43}$/;

/** Generates a token: 32 random bytes as 43 characters. */
export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

/** Whether a text looks like a token; other texts need no look-up. */
export function isToken(text: string): boolean {
  return form.test(text);
}

/** The stored form of a token: its SHA-256. A plain hash suffices for 256 random bits. */
export function digestToken(token: string): Buffer {
  return Buffer.from(hash("sha256", token, "hex"), "hex");
}

/** @param currentId the calling session; `undefined` for none */
export function sessionMessage(row: SessionRow, currentId: string | undefined): Session {
  return create(SessionSchema, {
    sessionId: row.id,
    userId: row.userId,
    method: row.method as SignInMethod,
    createTime: timestampFromDate(row.createTime),
    seenTime: timestampFromDate(row.seenTime),
    expireTime: timestampFromDate(row.expireTime),
    ipAddress: row.ipAddress,
    userAgent: row.userAgent,
    isCurrent: row.id === currentId,
  });
}
