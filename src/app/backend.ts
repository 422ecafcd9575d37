/** The services over an open database: what the command line needs, and what a server is built on. */
import type { Interceptor, Transport } from "@connectrpc/connect";
import { type Logger, pino } from "pino";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import { RedeemService } from "../../gen/uas/billing/v1/redeem_service_pb.ts";
import { UsageService } from "../../gen/uas/billing/v1/usage_service_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { createAccountService } from "../account/service.ts";
import type { OnLowBalance } from "../billing/ledger/booking.ts";
import { spentOfKeys, createBillingService } from "../billing/service.ts";
import { CallFeed } from "../billing/calls/feed.ts";
import { createCallService } from "../billing/calls/service.ts";
import { createRedeemService } from "../billing/redeem/service.ts";
import { createUsageService } from "../billing/calls/usage-service.ts";
import { callerKey } from "../core/caller.ts";
import type { Config, Settings } from "../config/config.ts";
import { type Database, openDatabase } from "../db/database.ts";
import { startEmbedded } from "../db/embedded.ts";
import { keepMasterKey } from "../config/master-key.ts";
import { createKeyCopies } from "../key/copies.ts";
import type { SpentOf } from "../key/message.ts";
import { createKeyService } from "../key/service.ts";
import { createDirectTransport } from "../rpc/direct-transport.ts";
import { createErrorMapping } from "../rpc/interceptor/error.ts";
import { requestId } from "../rpc/interceptor/request-id.ts";
import { type Service, serve } from "../core/service.ts";
import { createSignIn, type SignIn, type SignInObserver } from "../account/module.ts";
import type { Secrets } from "../webhook/secrets.ts";
import { createTaskReading } from "../task/module.ts";
import { createWebhookRoom } from "../webhook/module.ts";

/** What opening needs. */
export interface OpenOptions {
  readonly settings: Settings;
  readonly config: Config;
  /** Default: silent. */
  readonly log?: Logger;
  /** Told when money that people move takes an account below its threshold. Default: nobody. */
  readonly onLowBalance?: OnLowBalance;
  /** Told of signing in. Default: nobody. */
  readonly signInObserver?: SignInObserver;
  /** The address of the embedded PostgreSQL, where another process runs it. Contains a password: never log it. Default:
   * it is started here, or adopted. */
  readonly embeddedUrl?: string | undefined;
}

/** The services over an open database, and a transport on which the caller is the operator. */
export interface Backend {
  readonly database: Database;
  /** Reaches {@link services} and what can be read of tasks in this process, as the operator. */
  readonly transport: Transport;
  /** All but inference and tasks: they need a running server. */
  readonly services: readonly Service[];
  /** The master key, 32 bytes. Made when first asked for, where neither environment nor data folder has one. */
  readonly masterKey: () => Buffer;
  /** What accounts' webhooks are signed with. */
  readonly webhookSecrets: Secrets;
  readonly signIn: SignIn;
  close(): Promise<void>;
}

/** Opens the database, embedded where no other is set, and makes the services. */
export async function openBackend({
  settings,
  config,
  log = silent(),
  onLowBalance = () => {},
  signInObserver = { onSend() {}, onCheck() {}, onSignIn() {} },
  embeddedUrl,
}: OpenOptions): Promise<Backend> {
  const lines = { info: (line: string) => log.info(line), warn: (line: string) => log.warn(line) };
  const { dataDir, databaseUrl } = settings;
  const given = databaseUrl ?? embeddedUrl;
  const embedded = given === undefined ? await startEmbedded({ dataDir, log: lines }) : undefined;
  try {
    const database = await openDatabase(given ?? embedded?.url ?? "", { log: lines });
    const masterKey = keeping(() => masterKeyOf(settings, log));
    const feed = new CallFeed({ pool: database.pool, url: database.url });
    // Of the embedded database the data folder is that of the gateway.
    const isKeySure = settings.masterKey !== undefined || databaseUrl === undefined;
    const options = {
      database,
      config,
      masterKey,
      log,
      onLowBalance,
      signInObserver,
      feed,
      isKeySure,
    };
    const { services, signIn, webhookSecrets } = createRooms(options);
    return {
      database,
      services,
      masterKey,
      webhookSecrets,
      signIn,
      transport: createDirectTransport(
        [...services, createTaskReading(database)],
        [requestId, createErrorMapping(log), asOperator],
      ),
      async close() {
        await signIn.close();
        await feed.close();
        await database.close();
        await embedded?.stop();
      },
    };
  } catch (error) {
    await embedded?.stop();
    throw error;
  }
}

interface RoomOptions extends Required<Omit<OpenOptions, "settings" | "embeddedUrl">> {
  readonly database: Database;
  readonly masterKey: () => Buffer;
  readonly feed: CallFeed;
  /** See {@link KeyCopiesOptions}. */
  readonly isKeySure: boolean;
}

/** The rooms that need no running server. */
function createRooms({
  database,
  config,
  masterKey,
  log,
  onLowBalance,
  signInObserver,
  feed,
  isKeySure,
}: RoomOptions): Pick<Backend, "services" | "signIn" | "webhookSecrets"> {
  const { pool, orm } = database;
  const accounts = createAccountService({ orm });
  const accountExists = accounts.exists;
  const spentOf: SpentOf = (keyIds) => spentOfKeys(pool, keyIds);
  const copies = createKeyCopies({
    pool,
    masterKey,
    isOn: config.console.copyAgain,
    isKeySure,
    warn: (message, fields) => log.warn(fields, message),
  });
  const signIn = createSignIn({
    database,
    config,
    accounts,
    masterKey,
    log,
    observer: signInObserver,
    sweepCopies: () => copies.sweep(),
  });
  const { requireStepUp } = signIn;
  const webhooks = createWebhookRoom(
    { database, config: config.webhooks, masterKey },
    { accountExists, requireStepUp },
  );
  const onReveal = (facts: object): void => log.info(facts, "a key was shown again");
  const keyRoom = { orm, accountExists, spentOf, copies, requireStepUp, onReveal };
  const billing = { pool, accountExists, models: config.models, onLowBalance };
  const services = [
    ...signIn.services,
    serve(AccountService, accounts.service),
    serve(KeyService, createKeyService(keyRoom)),
    serve(BillingService, createBillingService(billing)),
    serve(RedeemService, createRedeemService({ orm, pool, accountExists })),
    serve(UsageService, createUsageService({ pool })),
    serve(CallService, createCallService({ pool, feed })),
    webhooks.service,
  ];
  return { services, signIn, webhookSecrets: webhooks.secrets };
}

/** In this process, whoever holds the database is the operator. */
const asOperator: Interceptor = (next) => (request) => {
  request.contextValues.set(callerKey, { kind: "operator", via: "command line" });
  return next(request);
};

/** Several processes on one database must have the same: what one has sealed the others must open. */
function masterKeyOf({ masterKey, databaseUrl, dataDir }: Settings, log: Logger): Buffer {
  if (masterKey !== undefined) return masterKey;
  if (databaseUrl !== undefined) {
    log.warn(
      { dataDir },
      "UAS_MASTER_KEY is not set: this process uses the one of its data folder",
    );
  }
  return keepMasterKey(dataDir);
}

/** Makes a value when it is first asked for, and keeps it. */
function keeping<Value>(make: () => Value): () => Value {
  let kept: { readonly value: Value } | undefined;
  return () => (kept ??= { value: make() }).value;
}

/** A log that says nothing. */
export function silent(): Logger {
  return pino({ level: "silent" });
}
