/** The users of the console. */
import type { InferEntity } from "@mikro-orm/core";
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { notSignedIn } from "../../core/browser-session.ts";
import type { SessionRef } from "../../core/caller.ts";
import type { Clock } from "../../core/clock.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { transact } from "../../db/pool/transaction.ts";
import { AccountEntity, SessionEntity, SignInLinkEntity, UserEntity } from "../entity.ts";

/** A stored user; secrets are encrypted or hashed. */
export type UserRow = InferEntity<typeof UserEntity>;

/** Changed members and their new values. */
type UserChange = Partial<
  Pick<UserRow, "name" | "phone" | "email" | "passwordHash" | "totp" | "totpPending" | "language">
>;

/** A new user. */
interface NewUser {
  /** `undefined` creates a new account with this name. */
  readonly accountId: string | undefined;
  readonly accountName: string;
  readonly name: string;
  readonly role: UserRole;
  readonly phone: string | null;
}

/** A page of users. */
interface UserPage {
  /** `undefined` for all accounts. */
  readonly accountId: string | undefined;
  readonly after: string | undefined;
  readonly limit: number;
}

/** Work in the transaction that changes a user. */
export type InTransaction = (em: EntityManager, user: UserRow) => Promise<void>;

/** All users. */
export interface Users {
  /** Undefined if there is none. */
  get(userId: string): Promise<UserRow | undefined>;
  byPhone(phone: string): Promise<UserRow | undefined>;
  byEmail(email: string): Promise<UserRow | undefined>;
  /** The operator created first. */
  firstOperator(): Promise<UserRow | undefined>;
  /** Newest first. */
  list(page: UserPage): Promise<UserRow[]>;
  /** @throws GatewayError INVALID_REQUEST if another user has that number */
  add(user: NewUser, also?: InTransaction): Promise<UserRow>;
  /** @throws GatewayError INVALID_REQUEST if another user has that number or address; NOT_FOUND */
  change(userId: string, change: UserChange): Promise<UserRow>;
  /** Deletes a user with its sessions and link. Returns whether it existed. */
  remove(userId: string, also: InTransaction): Promise<boolean>;
  /**
   * Records the 30-second period whose authenticator code was accepted. Returns whether it is newer
   * than the last one.
   */
  takeTotpStep(userId: string, step: number): Promise<boolean>;
}

/** Members that the entity omits unless a query requests them, as this one does. */
const secrets = { populate: ["passwordHash", "totp", "totpPending"] } as const;

/** Creates the store. */
export function createUsers(orm: MikroORM, newId: Clock["newId"]): Users {
  const one = async (where: Partial<Pick<UserRow, "id" | "phone" | "email">>) =>
    (await mapDatabaseLoss(orm.em.fork().findOne(UserEntity, where, secrets))) ?? undefined;
  return {
    get: (id) => one({ id }),
    byPhone: (phone) => one({ phone }),
    byEmail: (email) => one({ email }),
    async firstOperator() {
      const first = { ...secrets, orderBy: { id: "asc" }, limit: 1 } as const;
      const operators = orm.em.fork().find(UserEntity, { role: UserRole.OPERATOR }, first);
      return (await mapDatabaseLoss(operators))[0];
    },
    list({ accountId, after, limit }) {
      const where = {
        ...(accountId !== undefined && { accountId }),
        ...(after !== undefined && { id: { $lt: after } }),
      };
      const newest = { ...secrets, orderBy: { id: "desc" }, limit } as const;
      return mapDatabaseLoss(orm.em.fork().find(UserEntity, where, newest));
    },
    add: (user, also) => unique(transact(orm, (em) => addIn(em, { user, newId }, also))),
    change: (id, change) => unique(transact(orm, (em) => changeIn(em, id, change))),
    remove: (id, also) => transact(orm, (em) => removeIn(em, id, also)),
    async takeTotpStep(id, step) {
      const totpStep = BigInt(step);
      const newer = { id, $or: [{ totpStep: null }, { totpStep: { $lt: totpStep } }] };
      return (
        (await mapDatabaseLoss(orm.em.fork().nativeUpdate(UserEntity, newer, { totpStep }))) === 1
      );
    },
  };
}

/** The error for a user that does not exist. */
export function noSuchUser(): GatewayError {
  return new GatewayError(ErrorCode.NOT_FOUND, "there is no such user: check user_id");
}

/**
 * In one transaction, so that no account stays without a user if the number was taken meanwhile.
 */
async function addIn(
  em: EntityManager,
  { user: given, newId }: { readonly user: NewUser; readonly newId: Clock["newId"] },
  also: InTransaction = async () => {},
): Promise<UserRow> {
  const { accountName, name, role, phone } = given;
  const accountId = given.accountId ?? newId();
  if (given.accountId === undefined) em.create(AccountEntity, { id: accountId, name: accountName });
  const none = { email: null, passwordHash: null, totp: null, totpPending: null };
  const user = em.create(UserEntity, { id: newId(), accountId, name, role, phone, ...none });
  await em.flush();
  await also(em, user);
  return user;
}

async function changeIn(em: EntityManager, id: string, change: UserChange): Promise<UserRow> {
  const user = await em.findOne(UserEntity, { id }, secrets);
  if (user === null) throw noSuchUser();
  Object.assign(user, change);
  await em.flush();
  return user;
}

async function removeIn(em: EntityManager, id: string, also: InTransaction): Promise<boolean> {
  const user = await em.findOne(UserEntity, { id }, secrets);
  if (user === null || (await em.nativeDelete(UserEntity, { id })) === 0) return false;
  await em.nativeDelete(SessionEntity, { userId: id });
  await em.nativeDelete(SignInLinkEntity, { userId: id });
  await also(em, user);
  return true;
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

/** Converts unique-constraint failures to errors that name the conflicting member. */
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

/**
 * The user of a session.
 *
 * @throws GatewayError UNAUTHENTICATED if it no longer exists
 */
export async function requireUser(
  { users }: { readonly users: Users },
  { userId }: SessionRef,
): Promise<UserRow> {
  const user = await users.get(userId);
  if (user === undefined) throw notSignedIn();
  return user;
}
