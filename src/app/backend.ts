/**
 * The services over an open database. The command line uses them directly; a server builds on them.
 */
import type { Interceptor, Transport } from "@connectrpc/connect";
import { withoutOutages } from "../observe/outage-log.ts";
import { type Logger, pino } from "pino";
import { ConfigService } from "../../gen/uas/config/v1/config_service_pb.ts";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { RouteService } from "../../gen/uas/operator/v1/route_service_pb.ts";
import { ServiceCredentialService } from "../../gen/uas/operator/v1/service_credential_service_pb.ts";
import { createAccountService } from "../account/service.ts";
import type { OnLowBalance } from "../billing/ledger/booking.ts";
import { createBudgets } from "../billing/budgets.ts";
import { type BillingRoom, createBillingRoom, spentOfKeys } from "../billing/module.ts";
import { callerKey } from "../core/caller.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { version } from "../core/package.ts";
import type { Config, Settings } from "../config/config.ts";
import { LiveConfig } from "../config/live-config.ts";
import { type Database, openDatabase } from "../db/database.ts";
import { openEmbedded } from "../db/embedded/embedded.ts";
import { keepMasterKey } from "../config/master-key.ts";
import type { SpentOf } from "../key/message.ts";
import { requireMasterKey } from "../key/master-key.ts";
import { createKeyRoom } from "../key/module.ts";
import { createConfigService } from "../operator/configuration/service.ts";
import { createRouteService } from "../operator/route-service.ts";
import { createOperatorReading } from "../operator/service.ts";
import { createServiceCredentialService } from "../operator/service-credential/service.ts";
import { type ConfigLoader, createConfigLoader, type ReadConfig } from "./config-loader.ts";
import { createDirectTransport } from "../edge/rpc/direct-transport.ts";
import { createClocked, createErrorMapping, requestId } from "../edge/rpc/interceptors.ts";
import { type Service, serve } from "../core/contract-rules.ts";
import { createSignIn, type SignIn, type SignInObserver } from "../account/module.ts";
import type { Secrets } from "../webhook/secrets.ts";
import { createTaskReading } from "../task/read/reading.ts";
import { createWebhookRoom } from "../webhook/module.ts";

/** Options of {@link openBackend}. */
export interface OpenOptions {
  readonly settings: Settings;
  readonly config: Config;
  /**
   * Reads the configuration of the file with the secrets of the database. Default: `config`, which
   * was read before the database was open.
   */
  readonly readConfig?: ReadConfig | undefined;
  /**
   * Called if what should be in force cannot be read at the start; `config` is used then. By
   * default the start fails.
   */
  readonly onUnreadable?: ((error: unknown) => void) | undefined;
  /** Whether references that cannot be resolved have a placeholder. Default false. */
  readonly hasPlaceholders?: boolean | undefined;
  /** No log by default. */
  readonly log?: Logger;
  /**
   * Called if a transfer or charge by the operator reduces an account below its low-balance
   * threshold. Does nothing by default.
   */
  readonly onLowBalance?: OnLowBalance;
  /** Observes sign-ins. Does nothing by default. */
  readonly signInObserver?: SignInObserver;
  /**
   * The URL of the embedded PostgreSQL that the gateway runs. It may contain a password: never log
   * it. By default the server of the data folder, which is started if no gateway runs.
   */
  readonly embeddedUrl?: string | undefined;
  /** The clock of the process, for tests. The system clock by default. */
  readonly clock?: Clock | undefined;
}

/** The services over an open database, and a transport whose caller is the operator. */
export interface Backend {
  readonly database: Database;
  /** The log, without the consequences of a database outage. */
  readonly log: Logger;
  readonly clock: Clock;
  /** Calls {@link services}, and reads tasks, within this process as the operator. */
  readonly transport: Transport;
  /** All services but inference and tasks, which need a running server. */
  readonly services: readonly Service[];
  /**
   * The 32-byte master key. Created on first use if neither the environment nor the data folder has
   * one.
   */
  readonly masterKey: () => Buffer;
  /** The signing secrets of webhooks. */
  readonly webhookSecrets: Secrets;
  readonly signIn: SignIn;
  /** The configuration in force. */
  readonly config: LiveConfig;
  readonly loader: ConfigLoader;
  /** The etag of the configuration at the start. */
  readonly etag: string;
  close(): Promise<void>;
}

/** Opens the database (embedded if no other is configured) and creates the services. */
export async function openBackend({
  settings,
  config: given,
  readConfig = () => given,
  onUnreadable,
  hasPlaceholders = false,
  log: wholeLog = silent(),
  onLowBalance = () => {},
  signInObserver = { onSend() {}, onCheck() {}, onSignIn() {} },
  embeddedUrl,
  clock = systemClock,
}: OpenOptions): Promise<Backend> {
  const lines = {
    info: (line: string) => wholeLog.info(line),
    warn: (line: string) => wholeLog.warn(line),
  };
  const { dataDir, databaseUrl } = settings;
  const url = databaseUrl ?? embeddedUrl;
  const embedded = url === undefined ? await openEmbedded({ dataDir, log: lines }) : undefined;
  let opened: Database | undefined;
  try {
    const database = await openDatabase(url ?? embedded?.url ?? "", { log: lines });
    opened = database;
    const log = withoutOutages(wholeLog, (error) => database.outage.covers(error));
    const masterKey = keeping(() => masterKeyOf(settings, log));
    // The data folder of an embedded database is the gateway's data folder.
    const isKeySure = settings.masterKey !== undefined || databaseUrl === undefined;
    if (isKeySure) await requireMasterKey(database.pool, masterKey);
    const loader = createConfigLoader({
      pool: database.pool,
      masterKey,
      readConfig,
      unresolved: hasPlaceholders ? "placeholder" : "refuse",
    });
    const first = await loader.load().catch((error: unknown) => {
      if (onUnreadable === undefined) throw error;
      onUnreadable(error);
      return { config: given, etag: "" };
    });
    const config = new LiveConfig(first.config);
    const { services, signIn, webhookSecrets, billing } = createRooms({
      database,
      clock,
      config,
      masterKey,
      log,
      onLowBalance,
      signInObserver,
      isKeySure,
    });
    return {
      database,
      log,
      clock,
      services,
      masterKey,
      webhookSecrets,
      signIn,
      config,
      loader,
      etag: first.etag,
      transport: createDirectTransport(
        [
          ...services,
          createTaskReading(database),
          configService({ database, masterKey, config, loader, etag: first.etag }),
          serve(OperatorService, createOperatorReading({ ...database, config, version, clock })),
        ],
        [requestId, createErrorMapping(log), createClocked(clock), asOperator],
      ),
      async close() {
        await signIn.close();
        await billing.close();
        await database.close();
        await embedded?.stop();
      },
    };
  } catch (error) {
    await opened?.close();
    await embedded?.stop();
    throw error;
  }
}

interface RoomOptions
  extends Required<Pick<OpenOptions, "log" | "onLowBalance" | "signInObserver">> {
  readonly config: LiveConfig;
  readonly clock: Clock;
  readonly database: Database;
  readonly masterKey: () => Buffer;
  /** Whether this is certainly the master key of the gateway. */
  readonly isKeySure: boolean;
}

interface Rooms extends Pick<Backend, "services" | "signIn" | "webhookSecrets"> {
  readonly billing: BillingRoom;
}

/** The rooms that need no running server. */
function createRooms({
  database,
  clock,
  config,
  masterKey,
  log,
  onLowBalance,
  signInObserver,
  isKeySure,
}: RoomOptions): Rooms {
  const { pool, orm } = database;
  const budgets = createBudgets(pool);
  const accounts = createAccountService({
    priceLists: () => config.priceLists,
    orm,
    budgets,
    clock,
    allowHosts: config.webhooks.allowHosts,
    canMail: () => config.smtp !== undefined,
  });
  const accountExists = accounts.exists;
  const spentOf: SpentOf = (keyIds) => spentOfKeys(pool, keyIds);
  const signIn = createSignIn({
    database,
    clock,
    config,
    accounts,
    masterKey,
    log,
    observer: signInObserver,
    sweepCopies: () => keys.sweepCopies(),
  });
  const { requireStepUp } = signIn;
  const webhooks = createWebhookRoom(
    {
      database,
      config: config.webhooks,
      masterKey,
      requireMasterKey: () => requireMasterKey(pool, masterKey),
    },
    { accountExists, requireStepUp },
  );
  const keys = createKeyRoom(
    { database, clock, isCopied: () => config.console.copyAgain, masterKey, isKeySure, log },
    { accountExists, spentOf, budgets, requireStepUp },
  );
  const billing = createBillingRoom({ database, clock, config, accountExists, onLowBalance });
  const services = [
    ...signIn.services,
    serve(AccountService, accounts.service),
    keys.service,
    ...billing.services,
    webhooks.service,
    serve(RouteService, createRouteService({ pool, config, clock })),
    serve(ServiceCredentialService, createServiceCredentialService({ orm, clock }), clock),
  ];
  return { services, signIn, webhookSecrets: webhooks.secrets, billing };
}

/** The configuration as a process shows it that serves no calls. */
function configService({
  database,
  masterKey,
  config,
  loader,
  etag,
}: Pick<Backend, "database" | "masterKey" | "config" | "loader" | "etag">): Service {
  const loadMs = Date.now();
  const service = createConfigService({
    pool: database.pool,
    jobPool: database.jobPool,
    masterKey,
    status: () => ({
      config: config.current,
      etag,
      needsRestart: [],
      loadMs,
      problem: undefined,
      isFileDifferent: loader.isFileDifferent(config.hash),
    }),
    parse: loader.parse,
    needsRestart: () => [],
    reload: async () => {
      config.exchange((await loader.load()).config);
      return { isChanged: true, needsRestart: [] };
    },
    reloadOthers: () => {},
  });
  return serve(ConfigService, service);
}

/** Within this process, the caller is the operator: it can open the database anyway. */
const asOperator: Interceptor = (next) => (request) => {
  request.contextValues.set(callerKey, { kind: "operator", via: "command line" });
  return next(request);
};

/**
 * Reads the master key. All processes on one database must use the same one, since each decrypts
 * data of the others.
 */
export function masterKeyOf({ masterKey, databaseUrl, dataDir }: Settings, log: Logger): Buffer {
  if (masterKey !== undefined) return masterKey;
  if (databaseUrl !== undefined) {
    log.warn(
      { dataDir },
      "UAS_MASTER_KEY is not set: this process uses the key of its data folder",
    );
  }
  return keepMasterKey(dataDir);
}

/** Creates a value on first use and keeps it. */
function keeping<Value>(make: () => Value): () => Value {
  let kept: { readonly value: Value } | undefined;
  return () => (kept ??= { value: make() }).value;
}

/** A log without output. */
export function silent(): Logger {
  return pino({ level: "silent" });
}
