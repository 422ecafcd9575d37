/**
 * The console changes the configuration of two gateways: from the file to revisions, prices,
 * vendors, models, conflicts, and back (R-OPS-1).
 */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { buildPages } from "../../../src/app/built-pages.ts";
import { operatorToken } from "../lifecycle/process.ts";
import { openServed, type Served, type ServedProcess, stream } from "../lifecycle/served.ts";
import { newContext } from "./console-rig.ts";
import { barriers, overflow, ready } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const executablePath = findBrowser();

describe.runIf(executablePath !== undefined)("the console's configuration", () => {
  let served: Served;
  let gateway: ServedProcess;
  let browser: Browser;
  let page: Page;
  let key = "";
  const addresses: string[] = [];
  const troubles: string[] = [];

  beforeAll(async () => {
    await buildPages();
    served = await openServed();
    served.configure((yaml) => yaml.replace("  sim:", "  # The vendor of our tests.\n  sim:"));
    const only = { ONLY_FIRST: served.upstream.secret };
    [gateway] = await Promise.all([served.start(only), served.start()]);
    ({ key } = await served.customer());
    browser = await chromium.launch({
      executablePath: executablePath ?? "",
      args: ["--no-sandbox"],
    });
    page = await open();
    await page.goto(await link());
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  afterAll(async () => {
    await browser?.close();
    await served?.close();
  });

  function transport() {
    return createConnectTransport({
      baseUrl: gateway.internalUrl,
      httpVersion: "1.1",
      interceptors: [
        (next) => (request) => {
          request.header.set("authorization", `Bearer ${operatorToken}`);
          return next(request);
        },
      ],
    });
  }

  const config = () => createClient(ConfigService, transport());

  async function documentInForce(): Promise<string> {
    return (await config().getConfig({})).config?.document ?? "";
  }

  /** A one-time link that signs an operator in. */
  async function link(): Promise<string> {
    const { account } = await createClient(AccountService, transport()).createAccount({
      name: "operator",
    });
    const { accountId = "" } = account ?? {};
    const { token } = await createClient(UserService, transport()).createSignInLink({ accountId });
    return `${gateway.url}/console/welcome#${token}`;
  }

  async function open(view = {}): Promise<Page> {
    const state = await page?.context().storageState();
    const opened = await (await newContext(browser, view, state)).newPage();
    opened.setDefaultTimeout(30_000);
    opened.on("request", (request) => void addresses.push(request.url()));
    opened.on("pageerror", (error) => void troubles.push(String(error)));
    opened.on("console", (message) => {
      if (message.text().includes("Content Security Policy")) troubles.push(message.text());
    });
    return opened;
  }

  async function call(model: string): Promise<number> {
    const response = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }] }),
    });
    await response.arrayBuffer();
    return response.status;
  }

  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const dialog = () => page.getByRole("dialog");
  const field = (name: string | RegExp) => dialog().getByRole("textbox", { name, exact: true });
  const select = (name: string) => dialog().getByRole("combobox", { name, exact: true });
  const draft = () => page.getByRole("region", { name: "Draft" });

  async function go(tab = ""): Promise<void> {
    await page.goto(`${gateway.url}/console/configuration${tab && `?tab=${tab}`}`);
    await ready(page);
  }

  /** Applies the draft with a note, after the differences that are shown. */
  async function apply(note: string, paths: readonly string[]): Promise<void> {
    await button("Review and apply…").click();
    for (const path of paths) {
      await dialog().getByRole("cell", { name: path, exact: true }).waitFor();
    }
    await field("Note").fill(note);
    await dialog().getByRole("button", { name: "Apply", exact: true }).click();
  }

  test("while the file is in force, it is shown with file and line, and cannot be edited", async () => {
    await go();
    await page.getByText("The file is in force").waitFor();
    await page.getByText("All 2 processes have").waitFor();
    await go("vendors");
    await page.getByText("uas.yaml, line 4").waitFor();
    expect(await button("Add vendor").count()).toBe(0);
    await go("models");
    await button(/m$/).click();
    await field("Model name of the vendor").waitFor();
    expect(await field("Model name of the vendor").isDisabled()).toBe(true);
    expect(await field("Model name of the vendor").inputValue()).toBe("vendor-model");
  });

  test("the switch to revisions explains itself, and puts the file's document into force everywhere", async () => {
    const before = await documentInForce();
    await go();
    await button("Edit here from now on…").click();
    await dialog().getByText("becomes a revision in the database").waitFor();
    await dialog().getByRole("button", { name: "Edit here from now on" }).click();
    await page.getByText("Revision 1 is in force in all 2 processes.").waitFor();
    expect(await documentInForce()).toBe(before);
    await page.getByRole("button", { name: "Vendors" }).click();
    await button("Add vendor").waitFor();
  });

  test("a price is changed in its place, checked, compared, priced by the last calls, applied with a note, and in force everywhere", async () => {
    expect((await stream(gateway.url, key)).status).toBe(200);
    const before = await documentInForce();
    await go("models");
    // By keyboard.
    await button(/m$/).focus();
    await page.keyboard.press("Enter");
    await field("Output tokens per 1M tokens").fill("3.5x");
    await dialog()
      .getByRole("alert")
      .filter({ hasText: /USD|dollars|decimal/ })
      .first()
      .waitFor();
    await field("Output tokens per 1M tokens").fill("3.50");
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await draft().getByText("1 change").waitFor();
    await page.getByText("Changed", { exact: true }).waitFor();
    await button("Review and apply…").click();
    await button("Price the last 30 days again").click();
    await dialog().getByText("1 call of the last 30 days: revenue $").waitFor();
    await dialog().getByRole("cell", { name: "m", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await apply("More expensive", ["models.m.price.output"]);
    await page.getByText("Revision 2 is in force in all 2 processes.").waitFor();
    expect(await documentInForce()).toBe(before.replace('output: "2.00"', 'output: "3.50"'));
    expect(await draft().count()).toBe(0);
  });

  test("a faulty document shows its problems by line and at its field, and cannot be applied", async () => {
    await go("document");
    const area = page.getByRole("textbox", { name: "Document" });
    const text = await area.inputValue();
    await area.fill(text.replace("vendor: sim", "vendor: simm"));
    await page.getByText('no vendor "simm", did you mean "sim"?').first().waitFor();
    expect(await button("Review and apply…").isDisabled()).toBe(true);
    await button(/^Line 6, column/).click();
    expect(await page.evaluate("document.activeElement.tagName")).toBe("TEXTAREA");
    // The draft survives another page and a reload.
    await go("models");
    await page.getByText("1 problem").first().waitFor();
    await button(/m$/).click();
    await dialog().getByRole("alert").filter({ hasText: "no vendor" }).waitFor();
    await select("Vendor").selectOption("sim");
    await dialog().getByRole("button", { name: "Done" }).click();
    await page.waitForFunction("document.querySelector('section[aria-label=Draft]') === null");
    await go("document");
    await area.fill("vendors: [");
    await page.getByText("1 problem").waitFor();
    await button("Discard").click();
    await dialog().getByRole("button", { name: "Discard draft" }).click();
    await page.getByText("Draft discarded").waitFor();
    expect(await area.inputValue()).toBe(text);
  });

  test("a vendor with a sealed credential and a model are added, tested and called", async () => {
    const { secret, baseUrl } = served.upstream;
    await go("vendors");
    await button("Add vendor").click();
    await field("Name").fill("second");
    await dialog().getByRole("button", { name: "Add", exact: true }).click();
    await select("Vendor").selectOption("kind:openai-compatible");
    await field("Address (base_url)").fill(baseUrl);
    await select("Credential").selectOption("secret");
    await button("Enter a new secret…").click();
    const form = dialog().filter({ hasText: "Store a secret" });
    expect(await form.getByRole("textbox", { name: "Name of the secret" }).inputValue()).toBe(
      "second",
    );
    await form.getByLabel("Value").fill(secret);
    await form.getByRole("button", { name: "Store secret" }).click();
    await page.getByText("Secret second stored").waitFor();
    await dialog().getByText("A test call is possible once the draft is applied.").waitFor();
    await dialog().getByRole("button", { name: "Done" }).click();

    await page.getByRole("button", { name: "Models", exact: true }).click();
    await button("Add model").click();
    await field("Name").fill("gpt-4.1");
    await dialog().getByRole("button", { name: "Add", exact: true }).click();
    await dialog()
      .getByRole("alert")
      .filter({ hasText: "add the maximum output tokens" })
      .first()
      .waitFor();
    await field("Max output tokens").fill("100");
    await select("Vendor").selectOption("second");
    await field("Model name of the vendor").fill("vendor-model");
    await field("Input tokens per 1M tokens").last().fill("1");
    await field("Output tokens per 1M tokens").last().fill("2");
    await dialog().getByText("Vendor cost").first().click();
    await field("Input tokens per 1M tokens").first().fill("1");
    await field("Output tokens per 1M tokens").first().fill("9");
    await button("Add a price from a date").last().click();
    await field("From").last().fill("2099-01-01");
    await dialog().getByRole("button", { name: "Done" }).click();
    await draft().getByText("2 warnings").waitFor();
    await apply("A second vendor", ["vendors.second", 'models["gpt-4.1"]']);
    await page.getByText("Revision 3 is in force in all 2 processes.").waitFor();
    expect(await documentInForce()).toContain("# The vendor of our tests.");
    expect(await call("gpt-4.1")).toBe(200);
    await button(/gpt-4\.1$/).click();
    await dialog().getByRole("button", { name: "Test: second" }).click();
    await dialog()
      .getByText(/^gpt-4\.1 answered in/)
      .waitFor();
    // The secret is nowhere but in the gateway.
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])",
    );
    const places = [await page.content(), String(kept), await documentInForce(), ...addresses];
    expect(places.filter((place) => place.includes(secret))).toEqual([]);
  });

  test("a conflict says who changed what, keeps the draft, and both changes can be applied", async () => {
    await go("limits");
    await page.getByRole("textbox", { name: "Requests per minute" }).first().fill("600");
    await draft().getByText("1 change").waitFor();
    const theirs = (await documentInForce()).replace('output: "3.50"', 'output: "4.00"');
    // The page has not learned of it yet: the gateway refuses.
    await button("Review and apply…").click();
    await config().applyConfig({ document: theirs, etag: "3", note: "Their price" });
    await field("Note").fill("Mine");
    await dialog().getByRole("button", { name: "Apply", exact: true }).click();
    await page.getByText("The configuration was changed while you edited").waitFor();
    await page.getByText(/Revision 4 by .*“Their price”/).waitFor();
    const cell = (region: string, name: string) =>
      page.getByRole("region", { name: region }).getByRole("cell", { name, exact: true });
    await cell("Their changes", "models.m.price.output").waitFor();
    await cell("Your changes", "limits").waitFor();
    expect(await button("Review and apply…").isDisabled()).toBe(true);
    await button("Make my changes on top").click();
    await apply("Mine, on top", ["limits"]);
    await page.getByText("Revision 5 is in force in all 2 processes.").waitFor();
    expect(await documentInForce()).toContain('output: "4.00"');
    expect(await documentInForce()).toContain("rpm: 600");
  });

  test("a revision is compared and rolled back to, after a question, and a draft is kept", async () => {
    await go("limits");
    await page.getByRole("textbox", { name: "Wait for room" }).fill("5s");
    await page.getByRole("button", { name: "Revisions" }).click();
    await button("2").click();
    await dialog().getByRole("cell", { name: "vendors.second" }).waitFor();
    await dialog().getByRole("button", { name: "Roll back to this…" }).click();
    await dialog().getByRole("button", { name: "Roll back", exact: true }).click();
    await page.getByText("Revision 6 is in force in all 2 processes.").waitFor();
    expect(await call("gpt-4.1")).toBe(404);
    await page.getByRole("cell", { name: "back to revision 2" }).waitFor();
    await page.getByText("The configuration was changed while you edited").waitFor();
    await page.getByRole("cell", { name: "5s", exact: true }).waitFor();
    await button("Discard draft").click();
    await draft().waitFor({ state: "detached" });
  });

  test("a price list is added, and a model gets its own price in it", async () => {
    await go("models");
    await button("Add price list").click();
    await field("Name").fill("resale");
    await dialog().getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("textbox", { name: "Markup of resale" }).fill("15%");
    await button(/m$/).click();
    await dialog().getByText("Prices in the list resale").first().click();
    await field("Input tokens per 1M tokens").last().fill("0.3");
    await field("Output tokens per 1M tokens").last().fill("4");
    await dialog().getByRole("button", { name: "Done" }).click();
    await apply("Resale", ["price_lists", "models.m.price_lists"]);
    await page.getByText("Revision 7 is in force in all 2 processes.").waitFor();
    expect(await documentInForce()).toContain('markup: "15%"');
  });

  test.for([
    { theme: "light", language: "en", width: 390 },
    { theme: "dark", language: "zh", width: 2_560 },
    { theme: "dark", language: "en", width: 1_280 },
  ] as const)(
    "every view is accessible and fits: $theme, $language, $width pixels",
    async (view) => {
      const seen = await open(view);
      for (const search of [
        "",
        "?tab=vendors",
        "?tab=vendors&entry=sim",
        "?tab=models",
        "?tab=models&entry=m",
        "?tab=limits",
        "?tab=document",
        "?tab=revisions",
        "?tab=revisions&entry=2",
      ]) {
        await seen.goto(`${gateway.url}/console/configuration${search}`);
        await ready(seen);
        await expect.poll(() => overflow(seen), { message: search }).toBe(0);
        const part = search.includes("entry") ? "[role=dialog]" : "#content";
        await seen.locator(part).waitFor();
        expect(await barriers(seen, part)).toEqual([]);
      }
      await seen.context().close();
    },
  );

  test("a process that cannot load a revision is named, with its problem", async () => {
    await go("vendors");
    await button(/sim$/).click();
    await field("Variable").fill("ONLY_FIRST");
    await dialog().getByRole("button", { name: "Done" }).click();
    await apply("One gateway has it", ["vendors.sim.api_key"]);
    await page.getByText(/^Revision 8 is not in force yet in: .*ONLY_FIRST is not set/).waitFor();
    await go();
    await page.getByText("1 of 2 processes do not have this configuration.").waitFor();
    await page.getByRole("cell", { name: "Differs" }).waitFor();
    expect(await call("m")).toBe(200);
  });

  test("the files are returned to, and nothing on these pages has failed", async () => {
    await go("revisions");
    await button("Back to the file").click();
    await dialog().getByRole("button", { name: "Return to the files" }).click();
    await page.getByText(/^Rolled back: revision 9/).waitFor();
    await go();
    await page.getByText("The file is in force").waitFor();
    expect(troubles).toEqual([]);
  });
});
