/** Support of the console's tests: a gateway that shows its codes, and its database. */
import { createClient } from "@connectrpc/connect";
import { Pool } from "pg";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { type Gateway, startGateway } from "../../support/gateway.ts";
import { type Browser, letMinutePass, openBrowser } from "./browser.ts";

/** Ready from `beforeAll` on. */
export interface Console {
  readonly gateway: Gateway;
  readonly pool: Pool;
  /** A browser that has never been here. */
  browser(): Browser;
  /** Signs a browser in by a link. @param userId default: the operator */
  signInWithLink(
    browser: Browser,
    userId?: string,
  ): ReturnType<Browser["session"]["signInWithLink"]>;
  /** Signs in, by a link a moment ago, a user who has nothing else. */
  newMember(browser: Browser): ReturnType<Browser["session"]["signInWithLink"]>;
}

/** Registers start and end for a test file. */
export function useConsole(): Console {
  const running = new RunningConsole();
  beforeAll(async () => {
    running.gateway = await startGateway({
      vendors: { demo: { kind: "demo", baseUrl: "" } },
      sms: { provider: "console", countries: [], dailyMax: 1_000 },
    });
    running.pool = new Pool({ connectionString: running.gateway.databaseUrl, max: 2 });
  });
  // All tests come from one address, which may ask for so many codes an hour.
  beforeEach(() => letMinutePass(running.pool));
  afterAll(async () => {
    await running.pool?.end();
    await running.gateway?.close();
  });
  return running;
}

class RunningConsole implements Console {
  declare gateway: Gateway;
  declare pool: Pool;

  browser(): Browser {
    return openBrowser(this.gateway.url);
  }

  async signInWithLink(browser: Browser, userId = "") {
    const users = createClient(UserService, this.gateway.app.transport);
    const { token } = await users.createSignInLink({ userId });
    return browser.session.signInWithLink({ token });
  }

  async newMember(browser: Browser) {
    const { transport } = this.gateway.app;
    const accounts = createClient(AccountService, transport);
    const { account } = await accounts.createAccount({ name: "member" });
    const users = createClient(UserService, transport);
    const { user } = await users.createUser({ accountId: account?.accountId ?? "" });
    return this.signInWithLink(browser, user?.userId);
  }
}
