/** The RPCs that show receivers, and take one for healthy again. */
import { answering } from "../database-lost.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { cutPage, readPage } from "../page-token.ts";
import { recordActionOn } from "../operator-log.ts";
import { transact } from "../transact.ts";
import { isUuid } from "../uuid.ts";
import { accountCheck } from "./access.ts";
import { endpointMessage, type EndpointRow, endpointSql } from "./delivery-query.ts";
import { endpointOf } from "./delivery-rpcs.ts";
import { dueChannel } from "./enqueue.ts";
import type { WebhookRpcs, WebhookServiceOptions } from "./service.ts";

const topId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Closes the breaker and lets what waits go now: one that fails again opens it again. */
const enableSql = `
  with enabled as (
    update webhook_endpoint set failures = 0, probes = 0, failing_since = null, open_until = null, dead_time = null
    where id = $1 returning id, account_id),
  freed as (
    update webhook_delivery set due = now() where endpoint_id = $1 and state = 1 and due > now())
  select pg_notify('${dueChannel}', id || ' ' || account_id) from enabled`;

/** Makes them. */
export function createEndpointRpcs({
  pool,
  accountExists,
}: WebhookServiceOptions): Pick<WebhookRpcs, "listEndpoints" | "reenableEndpoint"> {
  const requireAccount = accountCheck(accountExists);
  return {
    async listEndpoints(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const page = readPage(request, { isKey: isUuid });
      const text = `${endpointSql} where account_id = $1 and id < $2 order by id desc limit $3`;
      const values = [accountId, page.after ?? topId, page.limit + 1];
      const { rows } = await answering(pool.query<EndpointRow>(text, values));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { endpoints: items.map(endpointMessage), nextPageToken };
    },

    async reenableEndpoint(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const id = endpointOf(accountId, request.origin);
      const row = await transact(pool, async (client) => {
        await client.query(enableSql, [id]);
        const read = await client.query<EndpointRow>(`${endpointSql} where id = $1`, [id]);
        const [enabled] = read.rows;
        if (enabled === undefined) throw noSuchEndpoint();
        const { origin } = enabled;
        await recordActionOn(client, context.values, {
          action: "webhook.enable",
          accountId,
          subject: id,
          after: { origin },
        });
        return enabled;
      });
      return { endpoint: endpointMessage(row) };
    },
  };
}

function noSuchEndpoint(): GatewayError {
  const text = "nothing was ever sent to this origin of the account: see ListEndpoints";
  return new GatewayError(ErrorCode.NOT_FOUND, text);
}
