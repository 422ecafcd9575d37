/** The RPCs of accounts. */
import { randomUUIDv7 } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { InferEntity } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import { type Account, AccountSchema } from "../../gen/uas/account/v1/account_pb.ts";
import type { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { callerKey } from "../caller.ts";
import { answering } from "../database-lost.ts";
import { cutPage, readPage } from "../page-token.ts";
import { isUuid } from "../uuid.ts";
import { noSuchAccount, parseAccountId } from "./access.ts";
import { parseDisplayName } from "./display-name.ts";
import { AccountEntity } from "./entity.ts";

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
}

/** Makes the account room over a database. */
export function createAccountService({ orm }: AccountServiceOptions): Accounts {
  const find = (id: string): Promise<AccountRow | null> =>
    answering(orm.em.fork().findOne(AccountEntity, { id }));
  return {
    exists: async (accountId) => isUuid(accountId) && (await find(accountId)) !== null,
    service: {
      async listAccounts(request) {
        const page = readPage(request, { isKey: isUuid });
        const where = page.after === undefined ? {} : { id: { $lt: page.after } };
        const order = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
        const rows = await answering(orm.em.fork().find(AccountEntity, where, order));
        const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
        return { accounts: items.map(accountMessage), nextPageToken };
      },

      async getAccount(request, { values }) {
        const row = await find(parseAccountId(values.get(callerKey), request.accountId));
        if (row === null) throw noSuchAccount();
        return { account: accountMessage(row) };
      },

      async createAccount(request) {
        const em = orm.em.fork();
        const name = parseDisplayName(request.name, 1);
        const row = em.create(AccountEntity, { id: randomUUIDv7(), name });
        await answering(em.flush());
        return { account: accountMessage(row) };
      },
    },
  };
}

type AccountRow = InferEntity<typeof AccountEntity>;

function accountMessage({ id, name, createTime }: AccountRow): Account {
  return create(AccountSchema, { accountId: id, name, createTime: timestampFromDate(createTime) });
}
