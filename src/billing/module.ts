/**
 * Puts the billing room together: its services for any process with the database, the ledger and
 * the jobs for a server.
 */
import { join } from "node:path";
import type { Logger } from "pino";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import { RedeemService } from "../../gen/uas/billing/v1/redeem_service_pb.ts";
import { UsageService } from "../../gen/uas/billing/v1/usage_service_pb.ts";
import type { Config, Settings } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { ObjectStore } from "../core/object-store.ts";
import { serve, type Service } from "../core/contract-rules.ts";
import type { Database } from "../db/database.ts";
import { ensurePartitions } from "../db/partition.ts";
import { withLossMapping, type Queryable } from "../db/pool/queryable.ts";
import { CallFeed } from "./calls/feed.ts";
import { createCallService } from "./calls/service.ts";
import { createUsageService } from "./calls/usage-service.ts";
import { journalFolder, type JournalNames } from "./journal/journal-files.ts";
import { type BillingJobs, billingPartitions, createBillingJobs } from "./jobs.ts";
import type { OnLowBalance } from "./ledger/booking.ts";
import type { Failpoint } from "./ledger/failpoints.ts";
import { createLedger, type LedgerWriter } from "./ledger/ledger-writer.ts";
import type { LedgerTimings } from "./ledger/ledger.ts";
import { createRedeemService } from "./redeem/service.ts";
import { createBillingService } from "./service.ts";

/** Dependencies of {@link createBillingRoom}. */
export interface BillingRoomOptions {
  readonly database: Database;
  readonly clock: Clock;
  readonly config: Pick<Config, "models">;
  /** Whether the account exists, suspended or not. Provided by the account room. */
  readonly accountExists: (accountId: string) => Promise<boolean>;
  /** Called when a booking takes an account below its threshold. */
  readonly onLowBalance: OnLowBalance;
}

/** The billing room without a ledger: all that needs no running server. */
export interface BillingRoom {
  readonly services: readonly Service[];
  /** Closes the connection on which live views of the call log listen. */
  close(): Promise<void>;
}

/** Makes the room's services. */
export function createBillingRoom(options: BillingRoomOptions): BillingRoom {
  const { database, clock, config, accountExists, onLowBalance } = options;
  const { pool, jobPool, orm, url } = database;
  const feed = new CallFeed({ pool, url });
  return {
    services: [
      serve(
        BillingService,
        createBillingService({
          pool,
          clock,
          auditPool: jobPool,
          accountExists,
          config,
          onLowBalance,
        }),
      ),
      serve(RedeemService, createRedeemService({ orm, pool, clock, accountExists }), clock),
      serve(UsageService, createUsageService({ pool, clock, config })),
      serve(CallService, createCallService({ pool, clock, feed })),
    ],
    close: () => feed.close(),
  };
}

/**
 * Reads how much each key has spent in its life, in nano-USD. A key that is not in the answer has
 * spent nothing.
 *
 * @throws GatewayError SERVICE_UNAVAILABLE if the database cannot be reached.
 */
export async function spentOfKeys(
  pool: Queryable,
  keyIds: readonly string[],
): Promise<ReadonlyMap<string, bigint>> {
  const { rows } = await withLossMapping(pool).query<{ key_id: string; spent: string }>(
    "select key_id, spent from key_spend where key_id = any($1)",
    [keyIds],
  );
  return new Map(rows.map(({ key_id, spent }) => [key_id, BigInt(spent)]));
}

/** Dependencies of {@link openLedger}. */
export interface OpenLedgerOptions {
  readonly database: Database;
  readonly settings: Pick<Settings, "dataDir">;
  readonly config: Pick<Config, "retention">;
  /** Stores exported days. Default: none are exported. */
  readonly exports?: ObjectStore | undefined;
  readonly log: Logger;
  /** Called when a call takes an account below its threshold. */
  readonly onLowBalance: OnLowBalance;
  /** Called when calls have cost more than their account could pay. */
  readonly onLoss: (accountId: string, lossNanos: bigint) => void;
  /**
   * The files of the journal. Default: a new one to write, and all of the data folder to replay.
   */
  readonly journal?: JournalNames | undefined;
  /** For tests. Default: {@link LedgerTimings}. */
  readonly timings?: Partial<LedgerTimings> | undefined;
  /** For tests that kill the process. Default: none. */
  readonly failpoint?: Failpoint | undefined;
}

/** The ledger of a server, with the jobs that keep it. */
export interface OpenLedger {
  readonly ledger: LedgerWriter;
  readonly jobs: BillingJobs;
}

/** Opens the ledger, with its journal below the data folder. The jobs do not run yet. */
export function openLedger(options: OpenLedgerOptions): OpenLedger {
  const { exports: store } = options;
  const { database, settings, config, log, onLoss, onLowBalance, timings, failpoint } = options;
  const common = {
    ...timings,
    ...(failpoint && { failpoint }),
    warn: (message: string, fields: object): void => log.warn(fields, message),
    alarm: (message: string, fields: object): void => log.error(fields, message),
    onLowBalance,
    onLoss,
  };
  const journal = { folder: journalFolder(settings.dataDir), names: options.journal };
  const ledger = createLedger({ ...common, url: database.url, journal });
  const { nodeId } = ledger;
  const info = (message: string, fields: object): void => log.info(fields, message);
  const jobs = createBillingJobs({
    ...common,
    pool: database.jobPool,
    nodeId,
    callDays: () => config.retention?.calls,
    exports: store && {
      store,
      folder: join(settings.dataDir, "exports", "incoming"),
      isOn: () => config.retention?.export ?? false,
    },
    info,
  });
  return { ledger, jobs };
}

/**
 * Makes missing partitions before the first call: PostgreSQL refuses a row on its way into the
 * default partition while the month's own is made, and the record of a call would be lost. A
 * failure is logged; the jobs try again.
 */
export async function prepareLedger(
  { jobPool }: Pick<Database, "jobPool">,
  log: Logger,
): Promise<void> {
  await ensurePartitions(jobPool, billingPartitions).catch((err: unknown) =>
    log.warn({ err }, "creating partitions failed; trying again in the background"),
  );
}
