/** A gateway as `npm start` makes it on a fresh machine, but for its ports and its database. */
import { CallService } from "../../gen/uas/billing/v1/call_service_pb.ts";
import { createClient } from "@connectrpc/connect";
import { Client } from "pg";
import { AccountService } from "../../gen/uas/account/v1/account_service_pb.ts";
import { BillingService } from "../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { type Gateway as OpenGateway, openGateway } from "../../src/app/gateway.ts";
import { loadConfig } from "../../src/config/load.ts";
import { readSettings } from "../../src/config/settings.ts";
import { servedKinds } from "../../src/provider/index.ts";
import { createTestDatabase } from "../support/database.ts";

/** A running gateway with the built-in demo, an account and a key. */
export interface DemoGateway {
  readonly app: OpenGateway;
  readonly publicUrl: string;
  readonly internalUrl: string;
  /**
   * The variables of a reader's shell: the database, the key, and the ids that commands of the
   * pages name: `ACCOUNT`, `KEY` (of another key) and `REQUEST` (of a charged call).
   */
  readonly env: Readonly<Record<string, string>>;
  /** Resolves when a call by this request id is recorded. */
  recorded(requestId: string): Promise<void>;
  /** Lets PostgreSQL plan a statement, without running it. */
  prepare(statement: string): Promise<void>;
  close(): Promise<void>;
}

/** Starts it. `cwd` has no configuration. */
export async function startDemoGateway(cwd: string): Promise<DemoGateway> {
  const database = await createTestDatabase();
  const env = {
    DATABASE_URL: database.url,
    UAS_LISTEN: "127.0.0.1:0",
    UAS_INTERNAL_LISTEN: "127.0.0.1:0",
    UAS_OPERATOR_TOKEN: "operator-of-this-test",
  };
  const config = loadConfig({ env: {}, cwd, kinds: servedKinds, unresolved: "refuse" });
  const app = await openGateway({ settings: readSettings(env, cwd), config });
  const urls = await app.listen();
  const { account } = await createClient(AccountService, app.transport).createAccount({
    name: "dev",
  });
  const accountId = account?.accountId ?? "";
  const billing = createClient(BillingService, app.transport);
  const log = createClient(CallService, app.transport);
  const amount = { currencyCode: "USD", amountNanos: 10_000_000_000n };
  await billing.topUp({ accountId, amount, reference: "test" });
  const keys = createClient(KeyService, app.transport);
  const { secret } = await keys.createKey({ accountId });
  const { key: second } = await keys.createKey({ accountId });
  const recorded = async (requestId: string): Promise<void> => {
    // A call is recorded when it is settled, which is after its reply.
    for (const end = Date.now() + 30_000; ; await new Promise((done) => setTimeout(done, 5))) {
      if ((await log.listCalls({ filter: { requestId } })).calls.length > 0) return;
      if (Date.now() > end) throw new Error(`no call by ${requestId}`);
    }
  };
  const request = await fetch(`${urls.publicUrl}/v1/images/generations`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${secret}`,
      "content-type": "application/json",
      "x-request-id": "a-charged-call",
    },
    body: JSON.stringify({ model: "demo-image", prompt: "A lighthouse" }),
  });
  if (!request.ok) throw new Error(await request.text());
  await recorded("a-charged-call");
  const sql = new Client({ connectionString: database.url });
  await sql.connect();
  return {
    app,
    ...urls,
    env: {
      ...env,
      UAS_API_KEY: secret,
      ACCOUNT: accountId,
      KEY: second?.keyId ?? "",
      REQUEST: "a-charged-call",
    },
    recorded,
    async prepare(statement) {
      await sql.query(`prepare checked as ${statement}`);
      await sql.query("deallocate checked");
    },
    async close() {
      await sql.end();
      const { findings } = await billing.auditLedger({});
      await app.close();
      await database.close();
      if (findings.length > 0) throw new Error(findings.map(({ detail }) => detail).join("\n"));
    },
  };
}
