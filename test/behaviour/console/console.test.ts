/** The console in a real browser, from the printed link on (R-CON-1, R-KEY-1 to R-KEY-4). */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { faults } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const run = promisify(execFile);
const browser = findBrowser();

/** A second, which the tests of keys hold, and one for the browser. */
const soonMs = 2_000;

describe.runIf(browser !== undefined)("the console", () => {
  let rig: ConsoleRig;
  let page: Page;
  /** Every secret that was shown. */
  const secrets: string[] = [];

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    page = await rig.open();
  });

  afterAll(() => rig?.close());

  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const dialog = () => page.getByRole("dialog");
  /** Goes to a page by the navigation. */
  const go = (name: string) =>
    page.getByRole("navigation").getByRole("link", { name, exact: true }).click();

  test("a newcomer gets from the link to a key, a call, its cost and its chart", async () => {
    await page.goto(await rig.link());
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    expect(new URL(page.url()).hash).toBe("");
    await rig.keep(page);

    await page.getByRole("link", { name: "Create API key" }).click();
    await dialog().getByRole("button", { name: "Create API key" }).click();
    const field = dialog().getByRole("textbox", { name: "API key" });
    const secret = await field.inputValue();
    secrets.push(secret);
    expect(secret).toMatch(/^uas_[A-Za-z0-9]{32}$/);
    const curl = (await dialog().getByRole("region", { name: "curl" }).textContent()) ?? "";
    await dialog().getByRole("button", { name: "Copy key" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe(secret);
    await dialog().getByRole("button", { name: "Done" }).click();

    await go("Overview");
    await page.getByText("Waiting for your first call").waitFor();
    const { stdout } = await run("sh", ["-c", curl.replace("curl ", "curl -sS ")]);
    expect(JSON.parse(stdout)).toHaveProperty("choices");
    await page.getByText("Your first call has arrived").waitFor();

    await page.getByRole("link", { name: "Open call" }).click();
    await dialog().getByText("Charged", { exact: true }).first().waitFor();
    const cost = await dialog()
      .getByRole("row", { name: /^Charged/ })
      .textContent();
    await dialog().getByRole("button", { name: "Close" }).click();
    await go("Usage");
    await page.locator("figure svg.recharts-surface").waitFor();
    await button("Table").click();
    const total = await page.locator("tfoot td").first().textContent();
    expect(`Charged${total}`).toBe(cost);
  });

  test("a disabled key is refused soon, and can be enabled again", async () => {
    const [secret = ""] = secrets;
    await go("API keys");
    await page
      .getByRole("button", { name: /^Actions for/ })
      .first()
      .click();
    await page.getByRole("menuitem", { name: "Disable" }).click();
    await page.getByText("Calls with it now fail with 401").waitFor();
    const start = performance.now();
    while ((await rig.call(secret)) !== 401) expect(performance.now() - start).toBeLessThan(soonMs);
    await button("Undo").click();
    await page.getByRole("cell", { name: "Enabled" }).waitFor();
    const again = performance.now();
    while ((await rig.call(secret)) !== 200) expect(performance.now() - again).toBeLessThan(soonMs);
  });

  test("calls appear by themselves while the log is live", async () => {
    await go("Calls");
    await button("Live").click();
    await page.getByText("Calls appear here as they end").waitFor();
    const rows = page.getByRole("row").filter({ hasText: "demo-chat" });
    expect(await rows.count()).toBe(0);
    await rig.call(secrets[0] ?? "");
    await rows.first().waitFor();
    await button("Live").click();
  });

  test("filters stand in the address, and a reload brings them back", async () => {
    await page.getByRole("combobox", { name: "Outcome" }).selectOption("failed");
    await page.waitForURL(/outcome=failed/);
    // The calls while the key was disabled, with the reason that their caller did not see
    // (R-AUTH-2).
    await page.getByRole("row").filter({ hasText: "401 invalid_request" }).first().click();
    await dialog().getByText("Enable the API key on the API keys page").waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    await page.getByRole("searchbox", { name: "Request ID" }).fill("no-such-call");
    await page.keyboard.press("Enter");
    await page.waitForURL(/request=no-such-call/);
    await page.getByText("No calls match these filters").waitFor();
    await page.reload();
    await page.getByText("No calls match these filters").waitFor();
    await button("Clear filters").first().click();
    await page.getByRole("row").filter({ hasText: "demo-chat" }).first().waitFor();
  });

  test("a key is shown again after a code, and only then", async () => {
    await page.goto(`${rig.url}/console/settings`);
    await button("Add").click();
    await dialog().getByRole("textbox", { name: "Mobile number" }).fill("+86 138 0013 8000");
    await dialog().getByRole("button", { name: "Send code" }).click();
    await enterCode("Save");
    await page.getByText("Mobile number saved").waitFor();

    await go("API keys");
    await page
      .getByRole("button", { name: /^Actions for/ })
      .first()
      .click();
    await page.getByRole("menuitem", { name: /^Show key/ }).click();
    await dialog().getByText("+86 138").waitFor();
    expect(await dialog().getByRole("button", { name: "Show key" }).isDisabled()).toBe(true);
    await dialog().getByRole("button", { name: "Send code" }).click();
    await enterCode("Show key");
    const field = dialog().getByRole("textbox", { name: "API key" });
    expect(await field.inputValue()).toBe(secrets[0]);
    await dialog().getByRole("button", { name: "Copy key" }).click();
    await dialog().getByRole("button", { name: "Done" }).click();
  });

  /** Types the code that development shows, and goes on. */
  async function enterCode(next: string): Promise<void> {
    const code = (await page.getByTestId("development-code").textContent()) ?? "";
    expect(code).toMatch(/^\d{7}$/);
    await rig.minutePasses();
    await dialog().getByRole("textbox", { name: "Code", exact: true }).fill(code);
    await dialog().getByRole("button", { name: next }).click();
  }

  test("the webhook secret is masked until a code shows it, and is replaced by one", async () => {
    await go("Webhooks");
    const shown = page.getByText(/^whsec_/);
    expect(await shown.first().textContent()).toContain("…");
    await button("Rotate…").click();
    await dialog().getByRole("button", { name: "Send code" }).click();
    await enterCode("Continue");
    await dialog().getByText("New, not yet promoted").waitFor();
    const whole = await dialog()
      .getByText(/^whsec_[^…]{40,}$/)
      .allTextContents();
    expect(whole).toHaveLength(2);
    secrets.push(...whole);
    await dialog().getByRole("button", { name: "Done" }).click();
    await button("Promote new secret…").waitFor();
  });

  test("over plain HTTP, without a clipboard, the console selects the new key and does not claim to have copied it", async () => {
    await rig.keep(page);
    const plain = await rig.open({ hasClipboard: false });
    await plain.addInitScript("document.execCommand = () => false");
    await plain.goto(`${rig.url}/console/keys`);
    // By the keyboard alone.
    await plain.getByRole("button", { name: "Create API key" }).first().focus();
    await plain.keyboard.press("Enter");
    await plain.getByRole("textbox", { name: "Name" }).waitFor();
    await plain.keyboard.type("by-keyboard");
    await plain.keyboard.press("Enter");
    const field = plain.getByRole("textbox", { name: "API key" });
    await field.waitFor();
    secrets.push(await field.inputValue());
    await expect
      .poll(() =>
        plain.evaluate(
          "getSelection()?.toString() || document.activeElement.value.slice(document.activeElement.selectionStart, document.activeElement.selectionEnd)",
        ),
      )
      .toBe(secrets.at(-1));
    await plain.getByRole("button", { name: "Copy key" }).click();
    await plain.getByText("Could not copy").first().waitFor();
    // It does not close before it was said twice.
    await plain.keyboard.press("Escape");
    await plain.getByRole("button", { name: "Done" }).click();
    await plain.getByText("You have not copied the key").waitFor();
    await plain.getByRole("button", { name: "Close anyway" }).click();
    await plain.getByRole("cell", { name: "by-keyboard", exact: true }).waitFor();
    await plain.context().close();
  });

  test("the playground answers, and says what that cost", async () => {
    await go("Playground");
    await page.getByRole("textbox", { name: "Message", exact: true }).fill("Hello");
    await page.keyboard.press("Enter");
    await page.getByText("Cost of the last run").waitFor();
    await page
      .getByRole("status")
      .getByText(/\$0\.0000/)
      .waitFor();
  });

  test("a code adds to the balance once, and an operator tops it up with a reference", async () => {
    const codes = createClient(RedeemService, rig.app.transport);
    const amount = { currencyCode: "USD", amountNanos: 2_500_000_000n };
    const { codes: made } = await codes.createRedeemCodes({ amount });
    await go("Billing");
    await page.getByRole("textbox", { name: "Redeem code" }).fill(made[0] ?? "");
    await button("Redeem").click();
    await page.getByText("$2.50 added to your balance").waitFor();
    await page.getByRole("cell", { name: "+$2.50" }).waitFor();

    await go("Accounts");
    await page.getByRole("link", { name: "dev", exact: true }).click();
    await button("Adjust balance").click();
    await dialog().getByRole("textbox", { name: "Amount in USD" }).fill("5");
    await dialog().getByRole("textbox", { name: "Reference" }).fill("invoice-17");
    await dialog().getByRole("button", { name: "Confirm" }).click();
    await page.getByText("+$5.00 recorded").waitFor();
    await page.getByRole("cell", { name: "+$5.00" }).waitFor();
  });

  test("J and K open the next and the previous call while one is open", async () => {
    await go("Calls");
    await page
      .getByRole("button", { name: /^Open the call of/ })
      .first()
      .click();
    await dialog().getByText("Timeline").waitFor();
    const first = page.url();
    for (const [key, isFirst] of [
      ["j", false],
      ["k", true],
    ] as const) {
      await page.keyboard.press(key);
      await page.waitForURL((url) => (url.href === first) === isFirst);
    }
    await page.keyboard.press("Escape");
    await page.waitForURL((url) => !url.search.includes("call="));
  });

  test("no secret stays behind: not on the page, in storage, in addresses or in the log", async () => {
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])",
    );
    const places = [await page.content(), String(kept), ...rig.addresses, ...rig.log];
    expect(secrets.length).toBeGreaterThan(2);
    for (const secret of secrets) {
      expect(places.filter((place) => place.includes(secret))).toEqual([]);
    }
    // The cookie signs its owner in, so no script may read it.
    expect(await page.evaluate("document.cookie")).toBe("");
  });

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)(
    "every page is accessible and fits 360 pixels: $theme, $language",
    { timeout: 180_000 },
    async (view) => {
      await rig.keep(page);
      const seen = await rig.open(view);
      const found = await faults(seen, { base: rig.url, theme: view.theme });
      expect(await seen.locator("html").getAttribute("data-theme")).toBe(view.theme);
      expect(found).toEqual([]);
      await seen.context().close();
    },
  );

  test("signing out ends it, and a page asks to sign in and leads back", async () => {
    await page.getByRole("button", { name: "User menu" }).click();
    await page.getByRole("menuitem", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(`${rig.url}/console/billing`);
    await page.waitForURL(/sign-in\?next=/);
    // A new user: an operator without an authenticator is not admitted by a code alone.
    await page.getByRole("textbox", { name: "Mobile number" }).fill("+86 139 1234 5678");
    await button("Send code").click();
    const code = (await page.getByTestId("development-code").textContent()) ?? "";
    await page.getByRole("textbox", { name: "Code", exact: true }).fill(code);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.waitForURL(/console\/billing$/);
    await page.getByRole("heading", { name: "Billing" }).waitFor();
  });

  test("nothing was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
