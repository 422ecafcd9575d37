/** The RPCs of operators: audit log, system information, and the RPCs of vendor-rpcs.ts. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { InferEntity } from "@mikro-orm/core";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { Pool } from "pg";
import { type AuditEntry, AuditEntrySchema } from "../../gen/uas/operator/v1/operator_pb.ts";
import type {
  ListAuditEntriesRequest,
  OperatorService,
} from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { noSuchAccount } from "../core/caller-rules.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";
import { cutPage, readPage } from "../core/pagination.ts";
import { isUuid } from "../core/uuid.ts";
import { type AlertRpcOptions, createAlertRpcs } from "./alert-rpcs.ts";
import { AuditEntryEntity } from "./entity.ts";
import { createVendorRpcs, type VendorRpcOptions } from "./vendor-rpcs.ts";

/** Options of {@link createOperatorService}. */
interface OperatorServiceOptions extends SystemRpcOptions, VendorRpcOptions, AlertRpcOptions {
  readonly orm: MikroORM;
}

/** Creates the implementation of `uas.operator.v1.OperatorService`. */
export function createOperatorService(
  options: OperatorServiceOptions,
): ServiceImpl<typeof OperatorService> {
  return {
    ...createAuditRpcs(options.orm),
    ...createVendorRpcs(options),
    ...createSystemRpcs(options),
    ...createAlertRpcs(options),
  };
}

/**
 * The service for a process that does not serve calls, such as a command. It lists, and clears
 * marks, but has no calls to report and calls no vendor.
 */
export function createOperatorReading(
  options: Omit<OperatorServiceOptions, "vendorHealth" | "test" | "testAlerts">,
): ServiceImpl<typeof OperatorService> {
  return createOperatorService({
    ...options,
    vendorHealth: () => ({ inFlight: 0, failure: undefined, success: undefined }),
    test: () =>
      Promise.resolve({
        text: undefined,
        error: "only a running gateway calls vendors: start one",
      }),
    testAlerts: () =>
      Promise.resolve([{ to: "", problem: "only a running gateway sends alerts: start one" }]),
  });
}

/** Creates the RPC that lists the audit log. */
function createAuditRpcs(
  orm: MikroORM,
): Pick<ServiceImpl<typeof OperatorService>, "listAuditEntries"> {
  return {
    async listAuditEntries(request) {
      const page = readPage(request, { isKey: isUuid });
      const after = page.after === undefined ? [] : [{ id: { $lt: page.after } }];
      const where = { $and: [...after, ...conditionsOf(request)] };
      const order = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
      const rows = await mapDatabaseLoss(orm.em.fork().find(AuditEntryEntity, where, order));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { entries: items.map(entryMessage), nextPageToken };
    },
  };
}

function conditionsOf({
  accountId,
  action,
  actor,
  fromTime,
  toTime,
}: ListAuditEntriesRequest): object[] {
  if (accountId !== "" && !isUuid(accountId)) throw noSuchAccount();
  const wanted = action.trim();
  const who = actor.trim();
  return [
    ...(accountId === "" ? [] : [{ accountId }]),
    ...(who === "" ? [] : [{ actor: who }]),
    // A room's name also selects all its actions: `<room>.<action>`. Room names have no dots.
    ...(wanted === ""
      ? []
      : [{ $or: [{ action: wanted }, { action: { $like: roomOf(wanted) } }] }]),
    ...(fromTime === undefined ? [] : [{ createTime: { $gte: timestampDate(fromTime) } }]),
    ...(toTime === undefined ? [] : [{ createTime: { $lt: timestampDate(toTime) } }]),
  ];
}

function roomOf(action: string): string {
  return `${action.replaceAll(/[\\%_]/g, "\\$&")}.%`;
}

function entryMessage(row: InferEntity<typeof AuditEntryEntity>): AuditEntry {
  return create(AuditEntrySchema, {
    auditEntryId: row.id,
    createTime: timestampFromDate(row.createTime),
    actor: row.actor,
    requestId: row.requestId,
    action: row.action,
    accountId: row.accountId ?? "",
    subject: row.subject,
    ...(row.before && { before: row.before as JsonObject }),
    ...(row.after && { after: row.after as JsonObject }),
    reason: row.reason,
  });
}

/** Options of {@link createSystemRpcs}. */
interface SystemRpcOptions {
  readonly pool: Pick<Pool, "query">;
  /** The version of this program. */
  readonly version: string;
}

const sql = {
  database:
    "select current_setting('server_version') as version, pg_database_size(current_database()) as bytes",
  migrations: "select name, executed_at from migration order by name",
  queues: `
    select 'tasks' as queue, state, count(*) as count, min(create_time) as oldest from task
      where state not in ('completed', 'failed', 'cancelled') group by state
    union all
    select 'webhooks', case when delivery.state = 2 then 'sending'
          when endpoint.dead_time is null then 'pending' else 'parked' end as state,
        count(*), min(event.create_time)
      from webhook_delivery delivery
        join webhook_event event on event.id = delivery.id
        left join webhook_endpoint endpoint on endpoint.id = delivery.endpoint_id
      where delivery.state in (1, 2) group by 2
    union all
    select 'holds', 'open', count(*), null from open_hold
    order by 1, 2`,
  processes:
    "select id, name, start_time, seen_time, ended, c.source, c.hash, c.load_time from node " +
    "left join config_process c on c.process_id = node.id order by start_time desc limit 100",
  // The planner's row counts: those of partitions that were never analysed are not known.
  growth: `
    select coalesce(sum(size), 0)::bigint as call_bytes,
        coalesce(sum(size) * (select sum(calls) from usage_hour where hour > now() - interval '7 days')
          / 7 * 365, 0)::bigint as year_bytes
      from (
        select sum(pg_total_relation_size(part.oid)) / sum(part.reltuples)::numeric as size
          from pg_inherits join pg_class part on part.oid = inhrelid
          where inhparent in ('call'::regclass, 'ledger_charge'::regclass) and part.reltuples > 1000
          group by inhparent
      ) tables`,
} as const;

interface GrowthRow {
  readonly call_bytes: string;
  readonly year_bytes: string;
}

/** Time for which the growth is not read again: pages ask often, and it sums many rows. */
const growthMs = 5 * 60 * 1_000;

interface QueueRow {
  readonly queue: string;
  readonly state: string;
  readonly count: string;
  readonly oldest: Date | null;
}

interface NodeRow {
  readonly id: string;
  readonly name: string;
  readonly start_time: Date;
  readonly seen_time: Date;
  readonly ended: Date | null;
  readonly source: string | null;
  readonly hash: string | null;
  readonly load_time: Date | null;
}

/** Creates the RPC that shows versions, processes and queue depths. */
export function createSystemRpcs({
  pool,
  version,
}: SystemRpcOptions): Pick<ServiceImpl<typeof OperatorService>, "getSystemInfo"> {
  const readGrowth = createGrowth(pool);
  return {
    async getSystemInfo() {
      const [database, migrations, queues, processes, growth] = await mapDatabaseLoss(
        Promise.all([
          pool.query<{ version: string; bytes: string }>(sql.database),
          pool.query<{ name: string; executed_at: Date }>(sql.migrations),
          pool.query<QueueRow>(sql.queues),
          pool.query<NodeRow>(sql.processes),
          readGrowth(),
        ]),
      );
      return {
        version,
        nodeVersion: process.versions.node,
        databaseVersion: database.rows[0]?.version ?? "",
        databaseBytes: BigInt(database.rows[0]?.bytes ?? 0),
        callBytes: BigInt(growth?.call_bytes ?? 0),
        yearBytes: BigInt(growth?.year_bytes ?? 0),
        startTime: timestampFromMs(Math.round(performance.timeOrigin)),
        migrations: migrations.rows.map((row) => ({
          name: row.name,
          time: timestampFromDate(row.executed_at),
        })),
        queues: queues.rows.map(({ queue, state, count, oldest }) => ({
          queue,
          state,
          count: BigInt(count),
          ...(oldest && { oldestTime: timestampFromDate(oldest) }),
        })),
        processes: processes.rows.map((row) => ({
          processId: row.id,
          name: row.name,
          startTime: timestampFromDate(row.start_time),
          seenTime: timestampFromDate(row.seen_time),
          ended: row.ended !== null,
          configSource: row.source ?? "",
          configHash: row.hash ?? "",
          ...(row.load_time && { configLoadTime: timestampFromDate(row.load_time) }),
        })),
      };
    },
  };
}

function createGrowth(pool: Pick<Pool, "query">): () => Promise<GrowthRow | undefined> {
  let growth: GrowthRow | undefined;
  let readAtMs = -Infinity;
  return async () => {
    if (performance.now() - readAtMs < growthMs) return growth;
    [growth] = (await pool.query<GrowthRow>(sql.growth)).rows;
    readAtMs = performance.now();
    return growth;
  };
}
