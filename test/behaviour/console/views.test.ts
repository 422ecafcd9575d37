/**
 * The console's pages of calls and usage: first steps, filters, spans and time zones, by hand and
 * by address.
 */
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { barriers, overflow, ready } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

describe.runIf(browser !== undefined)("views of the console", () => {
  let rig: ConsoleRig;
  let page: Page;
  let secret = "";

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    page = await rig.open();
  });

  afterAll(() => rig?.close());

  const field = (name: string) => page.getByRole("textbox", { name, exact: true });
  const select = (name: string) => page.getByRole("combobox", { name, exact: true });
  const rows = () => page.getByRole("row").filter({ hasText: /demo-chat|no-such/ });

  test("the first steps stay until a call was answered: money, a key, what went wrong", async () => {
    const { transport } = rig.app;
    const { account } = await createClient(AccountService, transport).createAccount({
      name: "new",
    });
    const accountId = account?.accountId ?? "";
    const { token } = await createClient(UserService, transport).createSignInLink({ accountId });
    await page.goto(`${rig.url}/console/welcome#${token}`);
    await page.getByText("Your balance is empty").waitFor();
    expect(await page.getByRole("link", { name: "Top up" }).getAttribute("href")).toBe(
      "/console/billing",
    );
    const amount = { currencyCode: "USD", amountNanos: 1_000_000_000n };
    await createClient(BillingService, transport).topUp({ accountId, amount, reference: "first" });
    await page.reload();
    await page.getByRole("link", { name: "Create API key" }).waitFor();

    ({ secret } = await createClient(KeyService, transport).createKey({ accountId, name: "dev" }));
    expect(await rig.call(secret, "no-such")).toBe(404);
    await page.reload();
    await page.getByText("Your last call failed: 404 model_not_found").waitFor();
    await page.getByText("Waiting for your first call").waitFor();
    expect(await page.getByRole("region", { name: "curl" }).count()).toBe(1);
    // Pushed, while the page is open.
    expect(await rig.call(secret)).toBe(200);
    await page.getByText("Your first call has arrived").waitFor();
    await page.getByRole("button", { name: "Dismiss" }).click();
    await page.reload();
    await ready(page);
    expect(await page.getByText("Waiting for your first call").count()).toBe(0);
    await rig.keep(page);
  });

  test("more filters of the call log: by keyboard, in the address, counted and cleared", async () => {
    await page.goto(`${rig.url}/console/calls`);
    await rows().first().waitFor();
    expect(await rows().count()).toBe(2);
    const more = page.getByRole("button", { name: /^More filters/ });
    await more.focus();
    await page.keyboard.press("Enter");
    await select("HTTP status").selectOption("4xx");
    await page.waitForURL(/status=4xx/);
    await expect.poll(() => rows().count()).toBe(1);
    await field("Error code").fill("model_not_found");
    await page.keyboard.press("Enter");
    await page.waitForURL(/code=model_not_found/);
    await select("End reason").selectOption("Rejected by the gateway");
    await page.waitForURL(/ending=refused/);
    expect(await more.textContent()).toBe("More filters (3)");
    expect(await rows().count()).toBe(1);
    await page.reload();
    await rows().first().waitFor();
    expect(await field("Error code").inputValue()).toBe("model_not_found");

    await page.getByRole("button", { name: "Clear filters" }).first().click();
    await expect.poll(() => rows().count()).toBe(2);
    expect(new URL(page.url()).search).toBe("");
    expect(await field("Error code").inputValue()).toBe("");
    await field("Minimum cost in USD").fill("much");
    await page.getByText("This value is not valid").waitFor();
    await field("Minimum cost in USD").fill("0.000001");
    await field("Vendor").focus();
    await page.waitForURL(/cost=/);
    await expect.poll(() => rows().count()).toBe(1);
    await rows().filter({ hasText: "demo-chat" }).waitFor();
  });

  test("a span of the call log is of its zone, and so are the times that are shown", async () => {
    const past = new Date(Date.now() - 3_600_000);
    const wall = (zone: string, date: Date): string =>
      date.toLocaleString("sv-SE", { timeZone: zone }).replace(" ", "T").slice(0, 16);
    const zone = "America/New_York";
    const search = new URLSearchParams({ zone, from: wall(zone, past) });
    await page.goto(`${rig.url}/console/calls?${search.toString()}`);
    await rows().first().waitFor();
    expect(await rows().count()).toBe(2);
    expect(await select("Time range").inputValue()).toBe("custom");
    const time = rows().locator("time").first();
    const at = new Date((await time.getAttribute("datetime")) ?? "");
    expect(await time.textContent()).toBe(at.toLocaleString("sv-SE", { timeZone: zone }));
    await page.getByText(`Times are in ${zone}.`).waitFor();
    // The same clock time in a zone that is behind is still to come.
    search.set("zone", "Pacific/Pago_Pago");
    await page.goto(`${rig.url}/console/calls?${search.toString()}`);
    await page.getByText("No calls match these filters").waitFor();
    await select("Time zone").selectOption("UTC");
    await page.waitForURL(/zone=UTC/);
    await rows().first().waitFor();
    await select("Time range").selectOption("24h");
    await page.waitForURL((url) => !url.searchParams.has("from"));
    await rows().first().waitFor();
  });

  test("the usage page keeps any zone and any days in its address", async () => {
    await page.goto(`${rig.url}/console/usage`);
    await ready(page);
    expect(await select("Time zone").inputValue()).toBe("");
    await page.getByText("Times are in Asia/Shanghai.").waitFor();
    await select("Time zone").selectOption("Pacific/Kiritimati");
    await page.waitForURL(/zone=Pacific%2FKiritimati/);
    await page.getByText("Times are in Pacific/Kiritimati.").waitFor();
    await select("Time range").selectOption("custom");
    await page.waitForURL(/from=\d{4}-\d{2}-\d{2}&to=/);
    const today = new Date().toLocaleDateString("sv-SE", { timeZone: "Pacific/Kiritimati" });
    expect(await page.getByLabel("Last day").inputValue()).toBe(today);
    await page.getByLabel("First day").fill(today);
    await page.getByLabel("Metric").focus();
    await page.waitForURL(new RegExp(`from=${today}`));
    expect(await select("Interval").inputValue()).toBe("hour");
    await select("Interval").selectOption("day");
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByRole("rowheader", { name: today }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByRole("rowheader", { name: today }).waitFor();
    await page.getByRole("link", { name: "View calls" }).click();
    await page.waitForURL(/\/calls\?.*zone=Pacific%2FKiritimati/);
    await rows().first().waitFor();
  });

  test.each(["en", "zh"] as const)(
    "nothing is too wide, and nothing is inaccessible: %s",
    async (language) => {
      const narrow = await rig.open({ width: 360, language });
      for (const path of [
        "/calls?status=4xx&zone=UTC&from=2026-01-01",
        "/usage?from=2026-01-01&to=2026-01-31",
      ]) {
        await narrow.goto(`${rig.url}/console${path}`);
        await ready(narrow);
        await expect.poll(() => overflow(narrow)).toBe(0);
        expect(await barriers(narrow, "#content")).toEqual([]);
      }
      await narrow.close();
    },
  );
});
