/** The services over an open database: what the command line needs, and what a server is built on. */
import type { Interceptor, Transport } from "@connectrpc/connect";
import { type Logger, pino } from "pino";
import { AccountService } from "../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../gen/uas/key/v1/key_service_pb.ts";
import { createAccountService } from "./account/service.ts";
import { createBillingService } from "./billing/service.ts";
import { callerKey, operator } from "./caller.ts";
import type { Config, Settings } from "./config/config.ts";
import { type Database, openDatabase } from "./db/database.ts";
import { startEmbedded } from "./db/embedded.ts";
import { createKeyService } from "./key/service.ts";
import { createDirectTransport } from "./rpc/direct-transport.ts";
import { createErrorMapping } from "./rpc/interceptor/error.ts";
import { requestId } from "./rpc/interceptor/request-id.ts";
import { type Service, serve } from "./rpc/service.ts";

/** What opening needs. */
export interface OpenOptions {
  readonly settings: Settings;
  readonly config: Config;
  /** Default: silent. */
  readonly log?: Logger;
}

/** The services over an open database, and a transport on which the caller is the operator. */
export interface Backend {
  readonly database: Database;
  /** Reaches {@link services} in this process, as the operator. */
  readonly transport: Transport;
  /** All but inference: that needs a running server. */
  readonly services: readonly Service[];
  close(): Promise<void>;
}

/** Opens the database, embedded where no other is set, and makes the services. */
export async function openBackend({ settings, log = silent() }: OpenOptions): Promise<Backend> {
  const lines = { info: (line: string) => log.info(line), warn: (line: string) => log.warn(line) };
  const { dataDir, databaseUrl } = settings;
  const embedded =
    databaseUrl === undefined ? await startEmbedded({ dataDir, log: lines }) : undefined;
  try {
    const database = await openDatabase(databaseUrl ?? embedded?.url ?? "", { log: lines });
    const { pool, orm } = database;
    const accounts = createAccountService({ orm });
    const services = [
      serve(AccountService, accounts.service),
      serve(KeyService, createKeyService({ orm, accountExists: accounts.exists })),
      serve(BillingService, createBillingService({ pool, accountExists: accounts.exists })),
    ];
    return {
      database,
      services,
      transport: createDirectTransport(services, [requestId, createErrorMapping(log), asOperator]),
      async close() {
        await database.close();
        await embedded?.stop();
      },
    };
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

/** In this process, whoever holds the database is the operator. */
const asOperator: Interceptor = (next) => (request) => {
  request.contextValues.set(callerKey, operator);
  return next(request);
};

/** A log that says nothing. */
export function silent(): Logger {
  return pino({ level: "silent" });
}
