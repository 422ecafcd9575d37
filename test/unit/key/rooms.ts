/** The account and key rooms over a separate database, reached like by clients. */
import { ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { pino } from "pino";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { createAccountService } from "../../../src/account/service.ts";
import { createBudgets } from "../../../src/billing/budgets.ts";
import { spentOfKeys } from "../../../src/billing/module.ts";
import { type Caller, callerKey, operator } from "../../../src/core/caller.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { type Database, openDatabase } from "../../../src/db/database.ts";
import { fromRpcError, type SentErrorCode } from "../../../src/core/errors.ts";
import { createKeyCopies } from "../../../src/key/copies.ts";
import type { SpentOf } from "../../../src/key/message.ts";
import { createKeyService } from "../../../src/key/service.ts";
import { createDirectTransport } from "../../../src/edge/rpc/direct-transport.ts";
import { createErrorMapping } from "../../../src/edge/rpc/interceptors.ts";
import { serve } from "../../../src/core/contract-rules.ts";
import { createTestDatabase } from "../../support/database.ts";

/** An account and one of its keys. */
export interface Owner {
  readonly accountId: string;
  readonly keyId: string;
  readonly secret: string;
}

/** The rooms, until closed. */
export type Rooms = Awaited<ReturnType<typeof openRooms>>;

/** Opens them on a fresh database. */
export async function openRooms() {
  const scratch = await createTestDatabase();
  const database = await openDatabase(scratch.url);
  const as = clientsOf(database);
  const clients = as(operator);
  return {
    database,
    url: scratch.url,
    /** Clients of a caller. */
    as,
    ...clients,
    /** Makes an account with a key. */
    async owner(models: string[] = []): Promise<Owner> {
      const { account } = await clients.accounts.createAccount({ name: "owner" });
      const accountId = account?.accountId ?? "";
      const { key, secret } = await clients.keys.createKey({ accountId, models });
      return { accountId, keyId: key?.keyId ?? "", secret };
    },
    async close(): Promise<void> {
      await database.close();
      await scratch.close();
    },
  };
}

function clientsOf({ orm, pool }: Database) {
  const budgets = createBudgets(pool);
  const { service, exists } = createAccountService({ clock: systemClock, orm, budgets });
  const spentOf: SpentOf = (keyIds) => spentOfKeys(pool, keyIds);
  const copies = createKeyCopies({
    pool,
    masterKey: () => Buffer.alloc(32, 1),
    isOn: () => true,
    isKeySure: true,
    warn: () => {},
  });
  const requireStepUp = (): Promise<void> => Promise.reject(new Error("no codes here"));
  const room = {
    orm,
    clock: systemClock,
    accountExists: exists,
    spentOf,
    budgets,
    copies,
    requireStepUp,
  };
  const services = [serve(AccountService, service), serve(KeyService, createKeyService(room))];
  return (caller: Caller) => {
    const setCaller: Interceptor = (next) => (request) => {
      request.contextValues.set(callerKey, caller);
      return next(request);
    };
    const log = pino({ enabled: false });
    const transport = createDirectTransport(services, [createErrorMapping(log), setCaller]);
    return {
      accounts: createClient(AccountService, transport),
      keys: createClient(KeyService, transport),
    };
  };
}

/** The code that a call fails with; `undefined` if it succeeds. */
export async function codeOf(call: Promise<unknown>): Promise<SentErrorCode | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    return fromRpcError(ConnectError.from(error)).code;
  }
}
