/** The users of the console. */
import type { Pool, PoolClient } from "pg";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { notSignedIn } from "../../core/browser-session.ts";
import type { SessionRef } from "../../core/caller.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { newId } from "../../core/uuid.ts";
import { transact } from "../../db/transaction.ts";

/** A stored user; secrets as they are kept. */
export interface UserRow {
  readonly id: string;
  readonly account_id: string;
  readonly role: UserRole;
  readonly name: string;
  readonly phone: string | null;
  readonly email: string | null;
  readonly password_hash: string | null;
  readonly totp: Buffer | null;
  readonly totp_pending: Buffer | null;
  readonly language: string;
  readonly create_time: Date;
  readonly sign_in_time: Date | null;
}

/** Columns that change, with their new values. */
type UserChange = Partial<
  Pick<UserRow, "name" | "phone" | "email" | "password_hash" | "totp" | "totp_pending" | "language">
>;

/** What a new user is made of. */
interface NewUser {
  /** `undefined`: a new account of this name. */
  readonly accountId: string | undefined;
  readonly accountName: string;
  readonly name: string;
  readonly role: UserRole;
  readonly phone: string | null;
}

/** Which users to list. */
interface UserPage {
  /** `undefined`: of all accounts. */
  readonly accountId: string | undefined;
  readonly after: string | undefined;
  readonly limit: number;
}

/** What is done in the transaction in which a user changes. */
export type Also = (client: PoolClient, user: UserRow) => Promise<void>;

/** All users. */
export interface Users {
  /** `undefined`: there is none. */
  get(userId: string): Promise<UserRow | undefined>;
  byPhone(phone: string): Promise<UserRow | undefined>;
  byEmail(email: string): Promise<UserRow | undefined>;
  /** The operator that was made first. */
  firstOperator(): Promise<UserRow | undefined>;
  /** Newest first. */
  list(page: UserPage): Promise<UserRow[]>;
  /** @throws GatewayError INVALID_REQUEST where somebody has that number */
  add(user: NewUser, also?: Also): Promise<UserRow>;
  /** @throws GatewayError INVALID_REQUEST where somebody has that number or address; NOT_FOUND */
  change(userId: string, change: UserChange): Promise<UserRow>;
  /** Deletes a user with sessions and link; whether there was one. */
  remove(userId: string, also: Also): Promise<boolean>;
  /** Notes the 30 seconds whose authenticator code was taken; whether it is newer than the last one. */
  takeTotpStep(userId: string, step: number): Promise<boolean>;
}

const columns = `id, account_id, role, name, phone, email, password_hash, totp, totp_pending, language,
  create_time, sign_in_time`;

const sql = {
  get: `select ${columns} from console_user where id = $1`,
  byPhone: `select ${columns} from console_user where phone = $1`,
  byEmail: `select ${columns} from console_user where email = $1`,
  firstOperator: `select ${columns} from console_user where role = ${UserRole.OPERATOR}
    order by id limit 1`,
  list: `select ${columns} from console_user
    where ($1::uuid is null or account_id = $1) and ($2::uuid is null or id < $2)
    order by id desc limit $3`,
  addAccount: `insert into account (id, name) values ($1, $2)`,
  add: `insert into console_user (id, account_id, name, role, phone) values ($1, $2, $3, $4, $5)
    returning ${columns}`,
  remove: `with gone as (delete from console_user where id = $1 returning ${columns}),
    sessions as (delete from console_session where user_id in (select id from gone)),
    links as (delete from sign_in_link where user_id in (select id from gone))
    select * from gone`,
  takeTotpStep: `update console_user set totp_step = $2
    where id = $1 and (totp_step is null or totp_step < $2)`,
} as const;

/** Makes the store. */
export function createUsers(pool: Pool): Users {
  const rows = async (text: string, values: unknown[]): Promise<UserRow[]> =>
    (await mapDatabaseLoss(pool.query<UserRow>(text, values))).rows;
  const one = async (text: string, values: unknown[]): Promise<UserRow | undefined> =>
    (await rows(text, values))[0];
  return {
    get: (userId) => one(sql.get, [userId]),
    byPhone: (phone) => one(sql.byPhone, [phone]),
    byEmail: (email) => one(sql.byEmail, [email]),
    firstOperator: () => one(sql.firstOperator, []),
    list: ({ accountId, after, limit }) =>
      rows(sql.list, [accountId ?? null, after ?? null, limit]),
    add: (user, also) => unique(transact(pool, (client) => addIn(client, user, also))),
    async change(userId, change) {
      const names = Object.keys(change) as (keyof UserChange)[];
      const sets = names.map((name, index) => `${name} = $${index + 2}`).join(", ");
      const text = `update console_user set ${sets} where id = $1 returning ${columns}`;
      const row = await unique(one(text, [userId, ...names.map((name) => change[name])]));
      if (row === undefined) throw noSuchUser();
      return row;
    },
    remove: (userId, also) =>
      transact(pool, async (client) => {
        const [user] = (await client.query<UserRow>(sql.remove, [userId])).rows;
        if (user !== undefined) await also(client, user);
        return user !== undefined;
      }),
    takeTotpStep: async (userId, step) =>
      (await mapDatabaseLoss(pool.query(sql.takeTotpStep, [userId, step]))).rowCount === 1,
  };
}

/** What is said of a user that does not exist. */
export function noSuchUser(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such user: check user_id");
}

/** In one transaction: nobody has an account without a user because the number was taken meanwhile. */
async function addIn(
  client: PoolClient,
  user: NewUser,
  also: Also = async () => {},
): Promise<UserRow> {
  const accountId = user.accountId ?? newId();
  if (user.accountId === undefined) {
    await client.query(sql.addAccount, [accountId, user.accountName]);
  }
  const values = [newId(), accountId, user.name, user.role, user.phone];
  const { rows } = await client.query<UserRow>(sql.add, values);
  if (rows[0] === undefined) throw new Error("unreachable");
  await also(client, rows[0]);
  return rows[0];
}

const takenTexts: Readonly<Record<string, { readonly param: string; readonly text: string }>> = {
  console_user_phone_unique: {
    param: "phone",
    text: "another user has this number: choose another one",
  },
  console_user_email_unique: {
    param: "email",
    text: "this e-mail address cannot be used: choose another one",
  },
};

/** Tells what somebody else has already. */
async function unique<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (error) {
    const constraint = error instanceof Error && "constraint" in error ? error.constraint : "";
    const taken = takenTexts[String(constraint)];
    if (taken === undefined) throw error;
    throw new GatewayError(ErrorCode.INVALID_REQUEST, taken.text, { param: taken.param });
  }
}

/* Who is signed in. */

/** The user of a session. @throws GatewayError UNAUTHENTICATED where there is none any more */
export async function requireUser(
  { users }: { readonly users: Users },
  { userId }: SessionRef,
): Promise<UserRow> {
  const user = await users.get(userId);
  if (user === undefined) throw notSignedIn();
  return user;
}
