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
import { changedFacts, recordAction, type Facts } from "../core/operator-log.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { membersOf } from "../core/partial-update.ts";
import { isUuid, newId } from "../core/uuid.ts";
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
      const name = request.name.trim();
      const id = newId();
      const work = orm.em.fork().transactional(async (em) => {
        const created = em.create(AccountEntity, { id, name });
        await em.flush();
        const action = { action: "account.create", accountId: id, subject: id, after: { name } };
        await recordAction(em, values, action);
        return created;
      });
      const row = await answering(work);
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
  const work = orm.em.fork().transactional(async (em) => {
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
  return answering(work);
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

/**
 * Reads what an UpdateAccount request changes.
 *
 * @throws GatewayError ACCESS_DENIED where the account's own session changes its discount
 */
function readAccountChange(
  { account, updateMask }: UpdateAccountRequest,
  caller: Caller | undefined,
): ChangedAccount {
  const members = membersOf(updateMask);
  if (members.has("discount_bp") && caller?.kind !== "operator") throw onlyOperator();
  return {
    ...(members.has("name") && { name: account?.name.trim() ?? "" }),
    ...(members.has("discount_bp") && { discountBp: account?.discountBp ?? 0 }),
    ...(members.has("low_balance_threshold") && {
      lowBalanceThreshold: account?.lowBalanceThreshold?.amountNanos ?? null,
    }),
  };
}

/** What suspending changes; the time is that of the first of several. */
function suspension(reason: string): (row: AccountRow) => ChangedAccount {
  const suspendReason = reason.trim();
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

function onlyOperator(): GatewayError {
  const text = "Access denied: discount_bp is set by an operator";
  return new GatewayError(ErrorCode.ACCESS_DENIED, text, { param: "update_mask" });
}

/* What accounts a list of them is of. */

/** The accounts of a page: those after `after` that the request searches for. */
function searchFor(
  { query, state }: ListAccountsRequest,
  after: string | undefined,
): FilterQuery<AccountRow> {
  const wanted = query.trim();
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
