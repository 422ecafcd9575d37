/**
 * The billing page in a real browser: filters of the ledger, and the alert of low balance
 * (R-CON-1).
 */
import { readFile } from "node:fs/promises";
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { faultsOf } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

/** Maximum time of a page on a busy machine, like for all other browser actions. */
const waiting = { timeout: 30_000 };

describe.runIf(browser !== undefined)("the billing page", () => {
  let rig: ConsoleRig;
  let page: Page;
  let apiKey = "";

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    const { accountId } = rig;
    const billing = createClient(BillingService, rig.app.transport);
    const amount = { currencyCode: "USD", amountNanos: 2_000_000_000n };
    await billing.topUp({ accountId, amount, reference: "gift", source: TopUpSource.PROMO });
    const minus = { currencyCode: "USD", amountNanos: -1_000_000_000n };
    await billing.adjustBalance({ accountId, amount: minus, reason: "typo", reference: "fix" });
    const keys = createClient(KeyService, rig.app.transport);
    apiKey = (await keys.createKey({ accountId, name: "calls" })).secret;
    expect(await rig.call(apiKey)).toBe(200);
    page = await rig.signIn();
  });

  afterAll(() => rig?.close());

  const ledger = () => page.getByRole("region", { name: "Ledger" });
  /** Waits until the ledger has entries of these types, newest first. */
  const listed = (...kinds: readonly string[]) =>
    expect
      .poll(() => ledger().locator("tbody tr td:nth-child(2)").allTextContents(), waiting)
      .toEqual(kinds);

  test("entries are filtered by type and time in the address, and a reload brings them back", async () => {
    await page.getByRole("link", { name: "Billing", exact: true }).click();
    await listed("Charge", "Adjustment", "Credit", "Top-up");
    // By the keyboard: the first letters choose.
    await page.getByRole("combobox", { name: "Type" }).focus();
    await page.keyboard.type("All except");
    await page.waitForURL(/kind=moved/);
    await listed("Adjustment", "Credit", "Top-up");
    await page.getByRole("combobox", { name: "Time range" }).selectOption("24h");
    await page.waitForURL(/range=24h/);
    await page.reload();
    await listed("Adjustment", "Credit", "Top-up");
    await page.getByRole("combobox", { name: "Type" }).selectOption("promo");
    await listed("Credit");

    // The file has what is shown.
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Download CSV" }).click(),
    ]);
    const csv = await readFile(await download.path(), "utf8");
    expect(csv.trim().split("\n")).toHaveLength(2);
    expect(csv).toContain(",promo,2.00,12.00,gift,");

    await page.getByRole("combobox", { name: "Type" }).selectOption("late_settlement");
    await page.getByText("No entries match these filters").waitFor();
    await page.getByRole("button", { name: "Clear filters" }).first().click();
    await page.waitForURL((url) => url.search === "");
    await listed("Charge", "Adjustment", "Credit", "Top-up");
  });

  test("a choice of a filter leaves the page where it is", async () => {
    await page.setViewportSize({ width: 1280, height: 500 });
    const filter = page.getByRole("combobox", { name: "Type" });
    await filter.scrollIntoViewIfNeeded();
    const scrolled = await page.evaluate("scrollY");
    expect(scrolled).toBeGreaterThan(0);
    await filter.selectOption("charge");
    await page.waitForURL(/kind=charge/);
    await listed("Charge");
    expect(await page.evaluate("scrollY")).toBeGreaterThan(0);
    await page.setViewportSize({ width: 1280, height: 900 });
  });

  test("the alert of low balance is set, sent once the balance is below it, and shown until it is not", async () => {
    await page.goto(`${rig.url}/console/billing`);
    const field = page.getByRole("textbox", { name: "Low-balance alert in USD" });
    await field.fill("-3");
    await page.getByText("Enter an amount above zero").waitFor();
    await field.fill("10.5");
    await page.getByRole("button", { name: "Save alerts" }).click();
    await page.getByText("Alerts saved").waitFor();
    const told = () =>
      rig.log.filter((line) => line.includes("fallen below its low-balance threshold"));
    const notice = page.getByRole("main").getByText("Your balance is below your alert of $10.50");
    expect(told()).toEqual([]);
    expect(await notice.count()).toBe(0);

    // 11 USD less the call before; one more dollar is below.
    const { accountId } = rig;
    const billing = createClient(BillingService, rig.app.transport);
    const amount = { currencyCode: "USD", amountNanos: -1_000_000_000n };
    await billing.adjustBalance({ accountId, amount, reason: "test", reference: "low" });
    expect(told()).toHaveLength(1);
    expect(told()[0]).toContain(accountId);
    await page.reload();
    await notice.waitFor();
    expect(await field.inputValue()).toBe("10.50");
    await page.getByRole("link", { name: "Overview", exact: true }).click();
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    await notice.waitFor();
    await page.goto(`${rig.url}/console/accounts`);
    await page.getByRole("row").filter({ hasText: "dev" }).getByText("Low balance").waitFor();
  });

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)(
    "below the alert the pages are accessible and fit 360 pixels: $theme, $language",
    { timeout: 120_000 },
    async (view) => {
      const seen = await rig.open(view);
      for (const path of ["", "billing", "accounts", `accounts/${rig.accountId}`]) {
        await seen.goto(`${rig.url}/console/${path}`);
        const name = `/low-${path.slice(0, 12) || "overview"}`;
        expect(await faultsOf(seen, { theme: view.theme, path: name })).toEqual([]);
      }
      await seen.context().close();
    },
  );

  test("a notice of low balance goes as soon as there is enough", async () => {
    await page.goto(`${rig.url}/console/billing`);
    const notice = page.getByText("Your balance is below your alert of $10.50");
    await notice.waitFor();
    await page.getByRole("textbox", { name: "Low-balance alert in USD" }).fill("");
    await page.getByRole("button", { name: "Save alerts" }).click();
    await notice.waitFor({ state: "detached" });
  });

  test("nothing was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
