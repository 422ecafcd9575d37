/**
 * A demo gateway with its console, a browser in front of it, and everything that either of them
 * says.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { Pool } from "pg";
import { pino } from "pino";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { type Gateway as OpenGateway, openGateway } from "../../../src/app/gateway.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { demoYaml } from "../../../src/config/demo-config.ts";
import { readSettings } from "../../../src/config/settings.ts";
import { buildPages, readPages } from "../../../src/app/built-pages.ts";
import { servedKinds } from "../../../src/provider/index.ts";
import { letMinutePass } from "../../unit/account/browser.ts";
import { createTestDatabase } from "../../support/database.ts";

/** Options of opening a page. */
export interface View {
  readonly theme?: "light" | "dark";
  readonly language?: "en" | "zh";
  readonly width?: number;
  /** Whether the browser has a clipboard: over plain HTTP it has none. Default: it has. */
  readonly hasClipboard?: boolean;
}

/** The rig. */
export interface ConsoleRig {
  readonly app: OpenGateway;
  readonly url: string;
  readonly accountId: string;
  /** Lines of the gateway's log. */
  readonly log: readonly string[];
  /** Every address that a browser asked for. */
  readonly addresses: readonly string[];
  /** Failures in a browser: errors of scripts, and violations of the security policy. */
  readonly troubles: readonly string[];
  /** A one-time link that signs an operator of the account in. */
  link(): Promise<string>;
  /** A page of a new browser session; signed in where the rig's `keep` was called before. */
  open(view?: View): Promise<Page>;
  /** An operator's page, at the overview. Pages that are opened later are signed in too. */
  signIn(): Promise<Page>;
  /** Calls a model with a key; resolves with the HTTP status. Default: `demo-chat`. */
  call(key: string, model?: string): Promise<number>;
  /** Lets a minute pass for codes: a number gets one a minute. */
  minutePasses(): Promise<void>;
  /** Keeps the session of a page for those that are opened later. */
  keep(page: Page): Promise<void>;
  close(): Promise<void>;
}

/** Vendors that a test adds to the demo's. */
interface MoreVendors {
  readonly vendors?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Settings of the gateway that differ. Default: none. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * Starts it.
 *
 * @param sections what the configuration has behind the demo's: more models, then other sections.
 * Default: nothing
 * @param vendors more vendors, and the variables with their credentials. Default: none
 */
export async function startConsole(
  executablePath: string,
  sections = "",
  vendors: MoreVendors = {},
): Promise<ConsoleRig> {
  const gateway = await startGateway(sections, vendors);
  // Containers have no sandbox for it; it opens nothing but this gateway.
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  const addresses: string[] = [];
  const troubles: string[] = [];
  let state: Awaited<ReturnType<BrowserContext["storageState"]>> | undefined;
  const rig: ConsoleRig = {
    ...gateway,
    addresses,
    troubles,
    async link() {
      const users = createClient(UserService, gateway.app.transport);
      const { token } = await users.createSignInLink({ accountId: gateway.accountId });
      return `${gateway.url}/console/welcome#${token}`;
    },
    async signIn() {
      const page = await rig.open();
      await page.goto(await rig.link());
      await page.getByRole("heading", { name: "Overview" }).waitFor();
      await rig.keep(page);
      return page;
    },
    async open(view = {}) {
      const context = await newContext(browser, view, state);
      const page = await context.newPage();
      page.setDefaultTimeout(30_000);
      page.on("request", (request) => void addresses.push(request.url()));
      page.on("pageerror", (error) => void troubles.push(String(error)));
      page.on("console", (message) => {
        if (message.text().includes("Content Security Policy")) troubles.push(message.text());
      });
      return page;
    },
    async keep(page) {
      state = await page.context().storageState();
    },
    async close() {
      await browser.close();
      await gateway.close();
    },
  };
  return rig;
}

/** A new browser session. @param state its cookies. Default: none */
export async function newContext(
  browser: Browser,
  { theme = "light", language = "en", width = 1280, hasClipboard = true }: View,
  state: Awaited<ReturnType<BrowserContext["storageState"]>> | undefined,
): Promise<BrowserContext> {
  const context = await browser.newContext({
    colorScheme: theme,
    locale: language === "zh" ? "zh-CN" : "en-US",
    timezoneId: "Asia/Shanghai",
    viewport: { width, height: 900 },
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
    ...(state && { storageState: state }),
  });
  if (!hasClipboard) {
    await context.addInitScript(() => {
      Object.defineProperty(navigator, "clipboard", { value: undefined });
    });
  }
  return context;
}

async function startGateway(
  sections: string,
  { vendors = "", env: secrets = {}, settings = {} }: MoreVendors,
) {
  const database = await createTestDatabase();
  const folder = mkdtempSync(join(tmpdir(), "uas-console-"));
  if (sections !== "") {
    const yaml = demoYaml.replace("vendors:\n", `vendors:\n${vendors}`);
    writeFileSync(join(folder, "uas.yaml"), yaml + sections);
  }
  const env = {
    DATABASE_URL: database.url,
    UAS_DATA_DIR: folder,
    UAS_LISTEN: "127.0.0.1:0",
    UAS_INTERNAL_LISTEN: "127.0.0.1:0",
    ...settings,
  };
  const pool = new Pool({ connectionString: database.url, max: 1 });
  // Built before anything waits for them: on a busy machine that takes longer than a page may.
  const pages = await readPages(await buildPages());
  const log: string[] = [];
  const app = await openGateway({
    settings: readSettings(env, folder),
    config: loadConfig({ env: secrets, cwd: folder, kinds: servedKinds, unresolved: "refuse" }),
    log: pino({ level: "trace" }, { write: (line: string) => void log.push(line) }),
    pages: Promise.resolve(pages),
  });
  const { publicUrl } = await app.listen();
  const { account } = await createClient(AccountService, app.transport).createAccount({
    name: "dev",
  });
  const accountId = account?.accountId ?? "";
  const amount = { currencyCode: "USD", amountNanos: 10_000_000_000n };
  const billing = createClient(BillingService, app.transport);
  await billing.topUp({ accountId, amount, reference: "test" });
  return {
    app,
    url: publicUrl.replace(/\/$/, ""),
    accountId,
    log,
    async call(key: string, model = "demo-chat") {
      const response = await fetch(`${publicUrl.replace(/\/$/, "")}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }),
      });
      await response.arrayBuffer();
      return response.status;
    },
    minutePasses: () => letMinutePass(pool),
    async close() {
      const { findings } = await billing.auditLedger({});
      await app.close();
      await pool.end();
      await database.close();
      rmSync(folder, { recursive: true, force: true });
      if (findings.length > 0) throw new Error(findings.map(({ detail }) => detail).join("\n"));
    },
  };
}
