/** The RPCs of accounts. */
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { LockMode, type FilterQuery } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { AccountState, type Account } from "../../gen/uas/account/v1/account_pb.ts";
import type {
  AccountService,
  UpdateAccountRequest,
  ListAccountsRequest,
} from "../../gen/uas/account/v1/account_service_pb.ts";
import { callerKey, type Caller } from "../core/caller.ts";
import { answering } from "../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../core/errors.ts";
import { parsePositiveMoney } from "../core/money.ts";
import { changedFacts, recordAction, type Facts } from "../core/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { readUpdateMask } from "../core/partial-update.ts";
import { parseDisplayName, parseLine } from "../core/text-line.ts";
import { isUuid, newId } from "../core/uuid.ts";
import { transact } from "../db/transaction.ts";
import { AccountEntity } from "./entity.ts";
import { accountMessage, type AccountRow } from "./message.ts";
import { noSuchAccount, parseAccountId } from "./room.ts";

/** What {@link createAccountService} needs. */
interface AccountServiceOptions {
  readonly orm: MikroORM;
}

/** The account room. */
export interface Accounts {
  /** The implementation of `uas.account.v1.AccountService`. */
  readonly service: ServiceImpl<typeof AccountService>;
  /**
   * Whether there is such an account; a malformed id is one that there is not.
   *
   * @throws GatewayError SERVICE_UNAVAILABLE where the database cannot be reached.
   */
  readonly exists: (accountId: string) => Promise<boolean>;
  /** An account as the caller may see it. @throws GatewayError NOT_FOUND */
  readonly messageOf: (caller: Caller | undefined, accountId: string) => Promise<Account>;
}

type Rpcs = ServiceImpl<typeof AccountService>;

/** Makes the account room over a database. */
export function createAccountService({ orm }: AccountServiceOptions): Accounts {
  const find = (id: string): Promise<AccountRow | null> =>
    answering(orm.em.fork().findOne(AccountEntity, { id }));
  return {
    exists: async (accountId) => isUuid(accountId) && (await find(accountId)) !== null,
    async messageOf(caller, accountId) {
      const row = await find(accountId);
      if (row === null) throw noSuchAccount();
      return accountMessage(row, caller);
    },
    service: { ...listAndCreate(orm), ...getAndChange(orm, find) },
  };
}

function listAndCreate(orm: MikroORM): Pick<Rpcs, "listAccounts" | "createAccount"> {
  return {
    async listAccounts(request, { values }) {
      const page = readPage(request, { isKey: isUuid });
      const where = searchFor(request, page.after);
      const order = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
      const rows = await answering(orm.em.fork().find(AccountEntity, where, order));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      const caller = values.get(callerKey);
      return { accounts: items.map((row) => accountMessage(row, caller)), nextPageToken };
    },

    async createAccount(request, { values }) {
      const name = parseDisplayName(request.name, 1);
      const id = newId();
      const row = await transact(orm, async (em) => {
        const created = em.create(AccountEntity, { id, name });
        await em.flush();
        const action = { action: "account.create", accountId: id, subject: id, after: { name } };
        await recordAction(em, values, action);
        return created;
      });
      return { account: accountMessage(row, values.get(callerKey)) };
    },
  };
}

function getAndChange(
  orm: MikroORM,
  find: (id: string) => Promise<AccountRow | null>,
): Pick<Rpcs, "getAccount" | "updateAccount" | "suspendAccount" | "resumeAccount"> {
  const change = async (wanted: Change) => {
    const caller = wanted.values.get(callerKey);
    const row = await changeAccount(orm, { ...wanted, id: parseAccountId(caller, wanted.id) });
    return { account: accountMessage(row, caller) };
  };
  return {
    async getAccount(request, { values }) {
      const caller = values.get(callerKey);
      const row = await find(parseAccountId(caller, request.accountId));
      if (row === null) throw noSuchAccount();
      return { account: accountMessage(row, caller) };
    },

    async updateAccount(request, { values }) {
      const caller = values.get(callerKey);
      const id = parseAccountId(caller, request.account?.accountId ?? "");
      const changed = readAccountChange(request, caller);
      return change({ id, values, action: "account.update", changeOf: () => changed });
    },

    async suspendAccount({ accountId, reason }, { values }) {
      const changeOf = suspension(reason);
      return change({ id: accountId, values, action: "account.suspend", changeOf, reason });
    },

    async resumeAccount({ accountId }, { values }) {
      const changeOf = (): ChangedAccount => resumption;
      return change({ id: accountId, values, action: "account.resume", changeOf });
    },
  };
}

interface Change {
  readonly id: string;
  readonly values: ContextValues;
  /** What is written down where an operator does it, and why. */
  readonly action: string;
  readonly reason?: string;
  readonly changeOf: (row: AccountRow) => ChangedAccount;
}

/** Under the row's lock: of two changes at once the second one sees the first. */
function changeAccount(orm: MikroORM, change: Change): Promise<AccountRow> {
  const { id, values, action, reason } = change;
  return transact(orm, async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = await em.findOne(AccountEntity, { id }, lock);
    if (row === null) throw noSuchAccount();
    const before = factsOf(row);
    Object.assign(row, change.changeOf(row));
    await em.flush();
    const changed = changedFacts(before, factsOf(row));
    await recordAction(em, values, { action, accountId: id, subject: id, ...changed, reason });
    return row;
  });
}

/** What can be changed of an account, as it is written down. */
function factsOf(row: AccountRow): Facts {
  const { name, discountBp, lowBalanceThreshold, state, suspendReason } = row;
  return { name, discountBp, lowBalanceThreshold, state, suspendReason };
}

/* What can be changed of an account, and by whom. */

/** Members of an account with their new values. */
type ChangedAccount = Partial<
  Pick<
    AccountRow,
    "name" | "discountBp" | "lowBalanceThreshold" | "state" | "suspendReason" | "suspendTime"
  >
>;

const changeable = ["name", "discount_bp", "low_balance_threshold"] as const;

/** All of a price, in basis points. */
const discountBpMax = 10_000;

/** The longest reason, in characters. */
const reasonCharsMax = 500;

/**
 * Reads what an UpdateAccount request changes.
 *
 * @throws GatewayError INVALID_REQUEST; ACCESS_DENIED where the account's own session changes its discount
 */
function readAccountChange(
  { account, updateMask }: UpdateAccountRequest,
  caller: Caller | undefined,
): ChangedAccount {
  const members = readUpdateMask(updateMask, changeable);
  if (members.has("discount_bp") && caller?.kind !== "operator") throw onlyOperator();
  return {
    ...(members.has("name") && { name: parseDisplayName(account?.name ?? "", 1) }),
    ...(members.has("discount_bp") && { discountBp: parseDiscount(account) }),
    ...(members.has("low_balance_threshold") && { lowBalanceThreshold: parseThreshold(account) }),
  };
}

/** What suspending changes; the time is that of the first of several. @throws GatewayError INVALID_REQUEST */
function suspension(reason: string): (row: AccountRow) => ChangedAccount {
  const suspendReason = parseLine(reason, {
    param: "reason",
    charsMin: 1,
    charsMax: reasonCharsMax,
  });
  return ({ suspendTime }) => ({
    state: AccountState.SUSPENDED,
    suspendReason,
    suspendTime: suspendTime ?? new Date(),
  });
}

/** What resuming changes. */
const resumption: ChangedAccount = {
  state: AccountState.ACTIVE,
  suspendReason: null,
  suspendTime: null,
};

function parseDiscount(account: Account | undefined): number {
  const discountBp = account?.discountBp ?? 0;
  if (discountBp >= 0 && discountBp <= discountBpMax) return discountBp;
  throw new GatewayError(
    ErrorCode.INVALID_REQUEST,
    `discount_bp is ${discountBp}: send 0 to ${discountBpMax} basis points, of which 100 are 1 %`,
    { param: "discount_bp" },
  );
}

function parseThreshold(account: Account | undefined): bigint | null {
  const threshold = account?.lowBalanceThreshold;
  return threshold === undefined ? null : parsePositiveMoney("low_balance_threshold", threshold);
}

function onlyOperator(): GatewayError {
  const text = "Access denied: discount_bp is set by an operator";
  return new GatewayError(ErrorCode.ACCESS_DENIED, text, { param: "update_mask" });
}

/* What accounts a list of them is of. */

/** The longest text that is searched for, in characters: the longest name. */
const queryCharsMax = 200;

/**
 * The accounts of a page: those after `after` that the request searches for.
 *
 * @throws GatewayError INVALID_REQUEST
 */
function searchFor(
  { query, state }: ListAccountsRequest,
  after: string | undefined,
): FilterQuery<AccountRow> {
  const wanted = parseLine(query, { param: "query", charsMin: 0, charsMax: queryCharsMax });
  if (!(Object.values(AccountState) as number[]).includes(state)) {
    const message = "state is no state of accounts: use ACTIVE or SUSPENDED";
    throw new GatewayError(ErrorCode.INVALID_REQUEST, message, { param: "state" });
  }
  const id = wanted.toLowerCase();
  const like = `%${wanted.replaceAll(/[\\%_]/g, "\\$&")}%`;
  return {
    $and: [
      ...(after === undefined ? [] : [{ id: { $lt: after } }]),
      ...(state === AccountState.UNSPECIFIED ? [] : [{ state }]),
      ...(wanted === "" ? [] : [isUuid(id) ? { id } : { name: { $ilike: like } }]),
    ],
  };
}
