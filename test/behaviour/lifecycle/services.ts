/** The services of an operator beside running processes: as the command line has them. */
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { createClient } from "@connectrpc/connect";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { type CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type Backend, openBackend } from "../../../src/app/backend.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { readSettings } from "../../../src/config/settings.ts";

/** Result of {@link createServices}. */
export interface Services {
  /** An account with money, and its key. */
  customer(): Promise<{ readonly accountId: string; readonly key: string }>;
  /** The calls by a request id. */
  calls(requestId: string): Promise<CallRecord[]>;
}

/**
 * Where nothing can be written, not even by root: what needs the gateway's folder does not find one
 * here.
 */
const nowhere = "/dev/null/nowhere";

/** Makes them over a database; each use opens and closes its own connections. */
export function createServices(url: string): Services {
  const settings = readSettings({ DATABASE_URL: url }, nowhere);
  const use = async <T>(work: (backend: Backend) => Promise<T>): Promise<T> => {
    const config = loadConfig({
      env: {},
      cwd: nowhere,
      kinds: new Map(),
      unresolved: "refuse",
    });
    const backend = await openBackend({ settings, config });
    try {
      return await work(backend);
    } finally {
      await backend.close();
    }
  };
  return {
    customer: () =>
      use(async ({ transport }) => {
        const { account } = await createClient(AccountService, transport).createAccount({
          name: "x",
        });
        const { accountId } = account ?? { accountId: "" };
        const amount = { currencyCode: "USD", amountNanos: 1_000_000_000n };
        await createClient(BillingService, transport).topUp({ accountId, amount, reference: "r" });
        const { secret } = await createClient(KeyService, transport).createKey({ accountId });
        return { accountId, key: secret };
      }),
    calls: (requestId) =>
      use(async ({ transport }) => {
        const log = createClient(CallService, transport);
        return (await log.listCalls({ filter: { requestId } })).calls;
      }),
  };
}
