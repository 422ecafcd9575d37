/** The RPCs of accounts. */
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { LockMode } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Account } from "../../gen/uas/account/v1/account_pb.ts";
import type { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { type Caller, callerKey } from "../caller.ts";
import { answering } from "../database-lost.ts";
import { changedFacts, type Facts, recordAction } from "../operator-log.ts";
import { cutPage, readPage } from "../page-token.ts";
import { transact } from "../transact.ts";
import { isUuid, newId } from "../uuid.ts";
import { noSuchAccount, parseAccountId } from "./access.ts";
import { type ChangedAccount, readAccountChange, resumption, suspension } from "./change.ts";
import { parseDisplayName } from "./display-name.ts";
import { AccountEntity } from "./entity.ts";
import { accountMessage, type AccountRow } from "./message.ts";
import { searchFor } from "./search.ts";

/** What {@link createAccountService} needs. */
export interface AccountServiceOptions {
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
