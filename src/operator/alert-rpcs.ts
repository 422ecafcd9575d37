/** The RPCs that show and test the alerts of operators. */
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Pool } from "pg";
import type { OperatorService } from "../../gen/uas/operator/v1/operator_service_pb.ts";
import type { Config } from "../config/config.ts";
import { mapDatabaseLoss } from "../core/database-lost.ts";

/** Options of {@link createAlertRpcs}. */
export interface AlertRpcOptions {
  readonly pool: Pick<Pool, "query">;
  readonly config: Config;
  /** Sends a test message to each address. Never rejects. */
  readonly testAlerts: () => Promise<
    readonly { readonly to: string; readonly problem: string | undefined }[]
  >;
}

interface AlertRow {
  readonly name: string;
  readonly subject: string;
  readonly severity: string;
  readonly text: string;
  readonly begin_time: Date;
  readonly seen_time: Date;
}

const activeSql =
  "select name, subject, severity, text, begin_time, seen_time from operator_alert order by begin_time, name, subject limit 1000";

/** Creates the RPCs. */
export function createAlertRpcs({
  pool,
  config,
  testAlerts,
}: AlertRpcOptions): Pick<ServiceImpl<typeof OperatorService>, "getActiveAlerts" | "testAlerts"> {
  return {
    async getActiveAlerts() {
      const { rows } = await mapDatabaseLoss(pool.query<AlertRow>(activeSql));
      const { email = [], webhooks = [] } = config.alerts ?? {};
      const alerts = rows.map(({ begin_time: begin, seen_time: seen, ...alert }) => ({
        ...alert,
        beginTime: timestampFromDate(begin),
        seenTime: timestampFromDate(seen),
      }));
      return { alerts, sent: email.length + webhooks.length > 0 };
    },
    async testAlerts() {
      const deliveries = await testAlerts();
      return { deliveries: deliveries.map(({ to, problem = "" }) => ({ to, error: problem })) };
    },
  };
}
