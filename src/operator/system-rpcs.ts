/** The RPC that shows what runs and what waits. */
import { timestampFromDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import type { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { answering } from "../database-lost.ts";

/** What the RPC needs. */
export interface SystemRpcOptions {
  readonly pool: Pick<Pool, "query">;
  /** The version of this program. */
  readonly version: string;
}

const sql = {
  database:
    "select current_setting('server_version') as version, pg_database_size(current_database()) as bytes",
  migrations: "select name, executed_at from migration order by id",
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
    select 'holds', 'open', count(*), null from hold where state = 1
    order by 1, 2`,
  processes:
    "select id, name, start_time, seen_time, ended from node order by start_time desc limit 100",
} as const;

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
}

/** Makes it. */
export function createSystemRpcs({
  pool,
  version,
}: SystemRpcOptions): Pick<ServiceImpl<typeof OperatorService>, "getSystemInfo"> {
  return {
    async getSystemInfo() {
      const [database, migrations, queues, processes] = await answering(
        Promise.all([
          pool.query<{ version: string; bytes: string }>(sql.database),
          pool.query<{ name: string; executed_at: Date }>(sql.migrations),
          pool.query<QueueRow>(sql.queues),
          pool.query<NodeRow>(sql.processes),
        ]),
      );
      return {
        version,
        nodeVersion: process.versions.node,
        databaseVersion: database.rows[0]?.version ?? "",
        databaseBytes: BigInt(database.rows[0]?.bytes ?? 0),
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
        })),
      };
    },
  };
}
