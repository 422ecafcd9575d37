/**
 * The operator's pages in a real browser: accounts, balances, users, codes, vendors, the audit log
 * (R-CON-1).
 */
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { faultsOf } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

/** A vendor with two credentials, which is never asked. */
const severalCredentials = `
  several:
    kind: openai-compatible
    base_url: http://127.0.0.1:9
    credentials:
      - { api_key: "\${env:MAIN_KEY}", limits: { rpm: 5000, concurrency: 7 } }
      - { api_key: "\${env:SPARE_KEY}", priority: 2 }
`;

/** Models with costs: one earns money, and the other loses some. */
const dearModels = `
  earning:
    type: TEXT
    routes: [{ vendor: demo, model: chat, cost: { input: "1000", output: "3000" } }]
    max_output_tokens: 256
    price: { input: "2000", output: "5000" }
  losing-with-a-rather-long-name-of-its-own:
    type: TEXT
    routes: [{ vendor: demo, model: chat, cost: { input: "1000", output: "3000" } }]
    max_output_tokens: 256
    price: { input: "500", output: "1000" }
  shared:
    type: TEXT
    routes:
      - { vendor: demo, model: chat, priority: 1 }
      - { vendor: demo, model: instant, weight: 3, max_context: 128000 }
      - { vendor: several, model: far-away, weight: 1 }
    fallback_models: [earning]
    max_output_tokens: 256
    price: { input: "2000", output: "5000" }
  drawing:
    type: IMAGE
    routes: [{ vendor: demo, model: image }]
    price:
      image:
        - { size: 256x256, quality: low, price: "0.01" }
        - { quality: high, price: "0.25" }
        - { price: "0.1" }
`;

describe.runIf(browser !== undefined)("the operator's pages", () => {
  let rig: ConsoleRig;
  let page: Page;
  let accountId = "";
  /** Every secret that was shown. */
  const secrets: string[] = [];

  beforeAll(async () => {
    rig = await startConsole(browser ?? "", dearModels, {
      vendors: severalCredentials,
      env: { MAIN_KEY: "key-of-several", SPARE_KEY: "other-key-of-several" },
    });
    page = await rig.signIn();
  });

  afterAll(() => rig?.close());

  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const dialog = () => page.getByRole("dialog");

  async function go(title: string): Promise<void> {
    await page.getByRole("link", { name: title, exact: true }).click();
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
  }

  test("an account is created, and found by a part of its name", async () => {
    await go("Accounts");
    await button("Create account").click();
    await dialog().getByRole("textbox", { name: "Name" }).fill("Nordwind GmbH");
    await dialog().getByRole("button", { name: "Create account" }).click();
    await page.getByRole("heading", { name: "Nordwind GmbH" }).waitFor();
    accountId = new URL(page.url()).pathname.split("/").at(-1) ?? "";
    await page.getByRole("link", { name: "All accounts" }).click();
    await page.getByRole("searchbox").fill("nordW");
    await page.keyboard.press("Enter");
    await page.waitForURL(/q=nordW/);
    await expect.poll(() => page.getByRole("row").count()).toBe(2);
    await page.getByRole("link", { name: "Nordwind GmbH" }).click();
    await page.getByRole("heading", { name: "Nordwind GmbH" }).waitFor();
  });

  /** Fills the form that adjusts the balance, and confirms it. */
  async function adjust(kind: string, fields: Readonly<Record<string, string>>): Promise<void> {
    await button("Adjust balance").click();
    await dialog().getByRole("button", { name: kind }).click();
    for (const [name, value] of Object.entries(fields)) {
      await dialog().getByRole("textbox", { name }).fill(value);
    }
    await dialog().getByRole("button", { name: "Confirm" }).click();
  }

  test("R-MON-9: a top-up is recorded once for its reference, an adjustment with its reason", async () => {
    const payment = { "Amount in USD": "25", Reference: "invoice 7" };
    await adjust("Top-up", payment);
    await page.getByText("+$25.00 recorded").waitFor();
    await adjust("Top-up", payment);
    await page.getByText("This reference was already recorded").waitFor();
    await adjust("Adjustment", { "Amount in USD": "-5.5", Reason: "Charged twice" });
    await page.getByText("−$5.50 recorded").waitFor();
    await page.getByText("Available now: $19.50").waitFor();
    const ledger = page.getByRole("region", { name: "Ledger" }).getByRole("row");
    await ledger.filter({ hasText: "Charged twice" }).waitFor();
    expect(await ledger.filter({ hasText: "invoice 7" }).count()).toBe(1);
    // The form refuses more than the available amount.
    await adjust("Adjustment", { "Amount in USD": "-100", Reason: "Too much" });
    await dialog().getByRole("alert").waitFor();
    await dialog().getByRole("button", { name: "Cancel" }).click();
  });

  test("a suspended account is refused within a second, and served again once it is resumed", async () => {
    const keys = createClient(KeyService, rig.app.transport);
    const { secret } = await keys.createKey({ accountId, name: "theirs" });
    const call = () => rig.call(secret, "demo/instant");
    expect(await call()).toBe(200);
    await button("Suspend…").click();
    await dialog().getByRole("textbox", { name: "Reason" }).fill("Chargeback");
    await dialog().getByRole("button", { name: "Suspend account" }).click();
    await page.getByText("Chargeback").waitFor();
    const start = performance.now();
    while ((await call()) !== 403) expect(performance.now() - start).toBeLessThan(1_000);
    await button("Resume").click();
    await button("Suspend…").waitFor();
    const again = performance.now();
    while ((await call()) !== 200) expect(performance.now() - again).toBeLessThan(1_000);
    await button("Disable: theirs").click();
    await button("Enable: theirs").waitFor();
    const off = performance.now();
    while ((await call()) !== 401) expect(performance.now() - off).toBeLessThan(1_000);
  });

  test("the log of all calls names the accounts, and can be narrowed to one", async () => {
    await go("All calls");
    const rows = page.getByRole("row").filter({ hasText: "Nordwind GmbH" });
    await rows.first().waitFor();
    await page.goto(`${rig.url}/console/all-calls?account=${accountId}`);
    await page.getByRole("row").filter({ hasText: "theirs" }).first().waitFor();
    await button(/Account: Nordwind GmbH/).click();
    await page.waitForURL((url) => !url.search.includes("account"));
    await rows.first().waitFor();
  });

  test("a charge is refunded from the call's details, and the account's ledger has the refund", async () => {
    // The newest one that was charged: those with the key that was disabled afterwards cost
    // nothing.
    const served = page.getByRole("row").filter({ hasText: "Nordwind GmbH" });
    const row = served.filter({ has: page.getByText("200", { exact: true }) }).first();
    await row.getByRole("button").first().click();
    await dialog().getByRole("button", { name: "Refund…" }).click();
    const form = dialog().filter({ hasText: "Refund this call" });
    // By the keyboard alone, which walks through the calls outside of the form.
    await form.getByRole("textbox", { name: "Reference" }).fill("");
    await page.keyboard.type("jk goodwill");
    await page.keyboard.press("Enter");
    await page.getByText(/ refunded$/).waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    await page.goto(`${rig.url}/console/accounts/${accountId}`);
    const ledger = page.getByRole("region", { name: "Ledger" }).getByRole("row");
    await ledger.filter({ hasText: "jk goodwill" }).filter({ hasText: "Refund" }).waitFor();
    await page.getByText("No webhooks yet").waitFor();
  });

  test("a user signs in by a link as a member, who has no operator pages", async () => {
    await page.goto(`${rig.url}/console/accounts/${accountId}`);
    await button("Add user").click();
    await dialog().getByRole("textbox", { name: "Name" }).fill("Inga");
    await dialog().getByRole("button", { name: "Add user" }).click();
    await page.getByRole("cell", { name: "Inga", exact: true }).waitFor();
    await button("Actions for Inga").click();
    await page.getByRole("menuitem", { name: /^Create sign-in link/ }).click();
    await dialog().getByRole("button", { name: "Create link" }).click();
    const link = await dialog().getByRole("textbox", { name: "Sign-in link" }).inputValue();
    secrets.push(new URL(link).hash.slice(1));
    await dialog().getByRole("button", { name: "Done" }).click();

    const theirs = await rig.open();
    await theirs.context().clearCookies();
    await theirs.goto(link);
    await theirs.getByRole("heading", { name: "Overview" }).waitFor();
    expect(await theirs.getByRole("link", { name: "Vendors" }).count()).toBe(0);
    for (const path of ["accounts", "audit"]) {
      await theirs.goto(`${rig.url}/console/${path}`);
      await theirs.getByRole("heading", { name: "Page not found" }).waitFor();
    }
    await theirs.context().close();

    await button("Actions for Inga").click();
    await page.getByRole("menuitem", { name: /^Sessions/ }).click();
    await dialog().getByRole("button", { name: "End", exact: true }).click();
    await dialog().getByText("No sessions").waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
  });

  test("redeem codes are shown once, and say who redeemed them", async () => {
    await go("Redeem codes");
    await button("Create codes").first().click();
    await dialog().getByRole("textbox", { name: "Value of each code in USD" }).fill("2.50");
    await dialog().getByRole("textbox", { name: "Number of codes" }).fill("2");
    await dialog().getByRole("button", { name: "Create codes" }).click();
    const lines = await dialog().getByRole("textbox", { name: "Codes, one per line" }).inputValue();
    const [first = "", second = ""] = lines.split("\n");
    expect(second).not.toBe("");
    secrets.push(first, second);
    await dialog().getByRole("button", { name: "Done" }).click();
    await dialog().getByText("You have not copied the codes").waitFor();
    await dialog().getByRole("button", { name: "Copy" }).click();
    await dialog().getByRole("button", { name: "Done" }).click();
    await createClient(RedeemService, rig.app.transport).redeem({ accountId, code: first });
    await page
      .getByRole("row")
      .filter({ hasText: `…${second.slice(-4)}` })
      .waitFor();
    await button(`Revoke: …${second.slice(-4)}`).click();
    await dialog().getByRole("button", { name: "Revoke code" }).click();
    await page.getByRole("row").filter({ hasText: "Nordwind GmbH" }).waitFor();
    await page.getByRole("cell", { name: "Revoked" }).waitFor();
  });

  test("a vendor is tested and the ledger audited from their pages", async () => {
    await go("Vendors");
    await button("Test: demo").click();
    await page.getByText(/ answered in /).waitFor();
    await go("Models & prices");
    await page.getByText(/the price of input, 500, is below the cost/).waitFor();
    await go("System");
    await button("Run audit").click();
    await page.getByText("The ledger is consistent", { exact: true }).waitFor();
  });

  test("everything that was done stands in the audit log, with who did it and why", async () => {
    await go("Audit log");
    const rows = page.getByRole("row");
    for (const done of ["Created the account", "Topped up the balance", "Resumed the account"]) {
      await rows.filter({ hasText: done }).filter({ hasText: "Nordwind GmbH" }).first().waitFor();
    }
    const reason = rows.filter({ hasText: "Suspended the account" });
    await reason.filter({ hasText: "Chargeback" }).getByRole("button").click();
    await dialog().getByText("account.suspend").waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    await button("Redeem codes").click();
    await page.waitForURL(/kind=redeem/);
    await rows.filter({ hasText: "Revoked a redeem code" }).waitFor();
  });

  test("no link and no code stays behind: not on the page, in storage, in addresses or in the log", async () => {
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])",
    );
    expect(secrets).toHaveLength(3);
    // The part after the `#` is not sent, although Chromium reports it to the tests.
    const sent = rig.addresses.map((address) => address.split("#")[0] ?? "");
    const places = [await page.content(), String(kept), ...sent, ...rig.log];
    for (const secret of secrets) {
      expect(places.filter((place) => place.includes(secret))).toEqual([]);
    }
  });

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)(
    "an account's page is accessible and fits 360 pixels: $theme, $language",
    async (view) => {
      const seen = await rig.open(view);
      await seen.goto(`${rig.url}/console/accounts/${accountId}`);
      await seen.getByRole("heading", { name: "Nordwind GmbH" }).waitFor();
      expect(await faultsOf(seen, { theme: view.theme, path: "/accounts/one" })).toEqual([]);
      await seen.context().close();
    },
  );

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)(
    "finances show what calls earned and lost, accessible and in 360 pixels: $theme, $language",
    async (view) => {
      const { secret } = await createClient(KeyService, rig.app.transport).createKey({
        accountId: rig.accountId,
        name: view.theme,
      });
      for (const model of ["earning", "losing-with-a-rather-long-name-of-its-own"]) {
        expect(await rig.call(secret, model)).toBe(200);
      }
      const seen = await rig.open(view);
      await seen.goto(`${rig.url}/console/finance`);
      const rows = seen.getByRole("row");
      await rows.filter({ hasText: "losing-with-a-rather-long-name" }).waitFor();
      await expect.poll(() => rows.filter({ hasText: "earning" }).innerText()).toMatch(/\d %/);
      expect(await faultsOf(seen, { theme: view.theme, path: "/finance/full" })).toEqual([]);
      await seen.goto(`${rig.url}/console/finance?group=account&figure=revenue&range=24h`);
      await rows.filter({ hasText: "dev" }).waitFor();
      expect(await faultsOf(seen, { theme: view.theme, path: "/finance/accounts" })).toEqual([]);
      await seen.context().close();
    },
  );

  test.for(["en", "zh"] as const)(
    "prices of images by size and quality are shown: %s",
    async (language) => {
      const seen = await rig.open({ language, theme: language === "en" ? "light" : "dark" });
      await seen.goto(`${rig.url}/console/models`);
      await seen.getByRole("button", { name: "drawing" }).click();
      const sheet = seen.getByRole("dialog");
      await sheet.getByText("256x256 · low").waitFor();
      await sheet.getByText("$0.01–$0.25").waitFor();
      expect(await faultsOf(seen, { theme: language, path: "/models/drawing" })).toEqual([]);
      await seen.context().close();
    },
  );

  test.for([
    {
      language: "en",
      lines: [
        "Priority 0, weight 3 (75 % of these calls) · requests up to 128,000 tokens",
        "Priority 0, weight 1 (25 % of these calls)",
        "Priority 1",
      ],
      fallbacks: "Fallback models",
      spare: "Priority 2",
      rate: "5,000 requests per minute",
    },
    {
      language: "zh",
      lines: [
        "优先级 0，权重 3（占 75%） · 请求最长 128,000 Token",
        "优先级 0，权重 1（占 25%）",
        "优先级 1",
      ],
      fallbacks: "备用模型",
      spare: "优先级 2",
      rate: "每分钟 5,000 次请求",
    },
  ] as const)(
    "how calls are shared among routes and credentials is shown: $language",
    async ({ language, lines, fallbacks, spare, rate }) => {
      const seen = await rig.open({ language, theme: language === "en" ? "light" : "dark" });
      await seen.goto(`${rig.url}/console/prices?model=shared`);
      const sheet = seen.getByRole("dialog");
      await sheet.getByText(fallbacks).waitFor();
      await sheet.getByText("earning", { exact: true }).waitFor();
      for (const [at, line] of lines.entries()) {
        await sheet.getByRole("listitem").nth(at).getByText(line, { exact: true }).waitFor();
      }
      expect(await faultsOf(seen, { theme: language, path: "/prices/shared" })).toEqual([]);
      await seen.goto(`${rig.url}/console/vendors`);
      await seen.getByText(spare).waitFor();
      await seen.getByText(rate).waitFor();
      expect(await faultsOf(seen, { theme: language, path: "/vendors/several" })).toEqual([]);
      await seen.context().close();
    },
  );

  test("nothing was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
