/**
 * Webhooks from the console to a receiver and back: secret, task, delivery, failure, resend
 * (R-CON-1, R-HOOK-1).
 */
import { createHmac } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { caFile, ok, type Received, type Receiver, startReceiver } from "../../support/receiver.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { faultsOf } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

/** Receivers of tests are on this machine: see docs/configuration.md. */
const sections = `webhooks: { allow_hosts: [localhost], ca_file: ${JSON.stringify(caFile)} }\n`;

describe.runIf(browser !== undefined)("webhooks in the console", () => {
  let rig: ConsoleRig;
  let receiver: Receiver;
  let page: Page;
  let apiKey = "";
  /** The first secret, and its replacement. */
  let [old, current] = ["", ""];

  beforeAll(async () => {
    receiver = await startReceiver();
    rig = await startConsole(browser ?? "", sections);
    const keys = createClient(KeyService, rig.app.transport);
    apiKey = (await keys.createKey({ accountId: rig.accountId, name: "tasks" })).secret;
    page = await rig.signIn();
  });

  afterAll(async () => {
    await rig?.close();
    await receiver?.close();
  });

  const button = (name: string | RegExp) => page.getByRole("button", { name });
  const dialog = () => page.getByRole("dialog");
  const rows = () => page.getByRole("row").filter({ hasText: receiver.origin });
  const openDelivery = /^Open delivery/;

  /** Types the code that development shows, and goes on. */
  async function enterCode(next: string): Promise<void> {
    await dialog().getByRole("button", { name: "Send code" }).click();
    const code = (await page.getByTestId("development-code").textContent()) ?? "";
    await rig.minutePasses();
    await dialog().getByRole("textbox", { name: "Code", exact: true }).fill(code);
    await dialog().getByRole("button", { name: next }).click();
  }

  /** Submits a task that notifies the receiver; resolves with its ID. */
  async function submit(callbackId: string): Promise<string> {
    const response = await fetch(`${rig.url}/api/ai/tasks`, {
      method: "POST",
      headers: { authorization: `Bearer ${apiKey}`, "content-type": "application/json" },
      body: JSON.stringify({
        modelKey: "demo-chat",
        textParams: { prompt: "Hello" },
        callbackUrl: `${receiver.origin}/hook`,
        callbackId,
      }),
    });
    expect(response.status).toBe(200);
    return ((await response.json()) as { taskId: string }).taskId;
  }

  /** Returns the deliveries of a task's end. */
  const endsOf = (callbackId: string) =>
    receiver.received.filter(({ body }) => {
      const told = JSON.parse(String(body)) as { callback_id: string; status: string };
      return told.callback_id === callbackId && told.status === "completed";
    });

  /** Waits for the end of a task to have come so often. */
  async function ended(callbackId: string, count: number): Promise<readonly Received[]> {
    while (endsOf(callbackId).length < count) await receiver.arrived(receiver.received.length + 1);
    return endsOf(callbackId);
  }

  const signatureBy = (secret: string, { body }: Received) =>
    createHmac("sha256", secret).update(body).digest("hex");

  test("the secret is replaced behind a code, and the new one promoted behind another", async () => {
    await page.goto(`${rig.url}/console/settings`);
    await button("Add").click();
    await dialog().getByRole("textbox", { name: "Mobile number" }).fill("+86 138 0013 8000");
    await enterCode("Save");
    await page.getByText("Mobile number saved").waitFor();
    await rig.minutePasses();

    await page.getByRole("link", { name: "Webhooks", exact: true }).click();
    await button("Rotate…").click();
    await enterCode("Continue");
    await dialog().getByText("New, not yet promoted").waitFor();
    const whole = await dialog()
      .getByText(/^whsec_[^…]{40,}$/)
      .allTextContents();
    [old = "", current = ""] = whole;
    await dialog().getByRole("button", { name: "Done" }).click();
    await rig.minutePasses();
    await button("Promote new secret…").click();
    await enterCode("Continue");
    await dialog().getByText("Old, still valid").waitFor();
    await dialog().getByRole("button", { name: "Done" }).click();
    expect(old).not.toBe(current);
  });

  test("R-HOOK-1: a task's webhook arrives, signed by the new secret, and stands in the list with its attempt", async () => {
    await submit("first");
    const [arrived] = await ended("first", 1);
    if (arrived === undefined) throw new Error("nothing arrived");
    expect(arrived.headers["x-ai-service-signature"]).toBe(signatureBy(current, arrived));
    const headers = arrived.headers as Record<string, string>;
    for (const secret of [old, current]) {
      expect(new Webhook(secret).verify(String(arrived.body), headers)).toMatchObject({
        callback_id: "first",
      });
    }
    const row = rows().filter({ hasText: "Completed" }).filter({ hasText: "Delivered" });
    await row.first().waitFor();
    await row.first().getByRole("button", { name: openDelivery }).click();
    await dialog().getByText("Attempt 1").waitFor();
    await dialog()
      .getByText(/^204 · Delivered/)
      .waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    await page.getByRole("region", { name: "Endpoints" }).getByText("Healthy").waitFor();
  });

  test("R-HOOK-3: one that failed shows what was answered, is sent again from the page, and arrives as the same bytes", async () => {
    receiver.behave((_received, response) => void response.writeHead(500).end("out of order"));
    const taskId = await submit("second");
    await ended("second", 1);
    await page.goto(`${rig.url}/console/webhooks?task=${taskId}`);
    const row = rows().filter({ hasText: "Completed" });
    await row.filter({ hasText: "Pending" }).getByRole("button", { name: openDelivery }).click();
    // On a busy machine the second attempt, five seconds later, is there before the page.
    await dialog()
      .getByText(/^500 · Endpoint error/)
      .first()
      .waitFor();
    await dialog().getByText("out of order").first().waitFor();

    receiver.behave(ok);
    await dialog().getByRole("button", { name: "Resend" }).click();
    const [first, second] = await ended("second", 2);
    if (first === undefined || second === undefined) throw new Error("it did not arrive twice");
    expect(second.body).toEqual(first.body);
    expect(second.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
    expect(second.headers["x-ai-service-signature"]).toBe(signatureBy(current, second));
    await dialog()
      .getByText(/^204 · Delivered/)
      .waitFor();
    await dialog().getByText("Attempt 2").waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
    await row.filter({ hasText: "Delivered" }).waitFor();
  });

  test("R-CON-1: an operator finds it among the deliveries of all accounts, by each filter, and sends it again", async () => {
    const accounts = createClient(AccountService, rig.app.transport);
    const { account } = await accounts.createAccount({ name: "Südwind" });
    await page.getByRole("link", { name: "All deliveries", exact: true }).click();
    await page.getByRole("heading", { name: "All deliveries" }).waitFor();
    await rows().filter({ hasText: "dev" }).first().waitFor();

    // Whatever part of a receiver's address is pasted, its origin is looked for.
    const field = (name: string) => page.getByRole("searchbox", { name });
    await field("Endpoint").fill(`${receiver.origin}/hook?a=b`);
    await page.keyboard.press("Enter");
    await page.waitForURL((url) => url.searchParams.get("origin") === receiver.origin);
    await rows().first().waitFor();
    await page.getByRole("combobox", { name: "Status" }).selectOption("parked");
    await page.getByText("No deliveries match these filters").waitFor();
    await page.reload();
    await page.getByText("No deliveries match these filters").waitFor();
    await button("Clear filters").click();

    await rows().first().waitFor();
    await field("Account ID").fill(account?.accountId ?? "");
    await page.keyboard.press("Enter");
    await page.getByText("No webhooks yet").waitFor();
    await button(/^Account: Südwind/).click();
    await rows().first().getByRole("button", { name: openDelivery }).click();
    await dialog().getByText(rig.accountId).waitFor();
    const before = receiver.received.length;
    await dialog().getByRole("button", { name: "Resend" }).click();
    await receiver.arrived(before + 1);
    await dialog().getByText("Attempt 2").or(dialog().getByText("Attempt 3")).first().waitFor();
    await dialog().getByRole("button", { name: "Close" }).click();
  });

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)(
    "the pages with deliveries are accessible and fit 360 pixels: $theme, $language",
    { timeout: 60_000 },
    async (view) => {
      // A code replaces the cookie.
      await rig.keep(page);
      const seen = await rig.open(view);
      for (const path of ["webhooks", "all-deliveries"]) {
        await seen.goto(`${rig.url}/console/${path}`);
        await seen.getByText(receiver.origin).first().waitFor({ state: "attached" });
        const name = `/${path}/filled`;
        expect(await faultsOf(seen, { theme: view.theme, path: name })).toEqual([]);
      }
      await seen.context().close();
    },
  );

  test("no secret stays behind, nothing was forbidden by the security policy, and no script failed", async () => {
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])",
    );
    const places = [await page.content(), String(kept), ...rig.addresses, ...rig.log];
    for (const secret of [old, current]) {
      expect(secret).toMatch(/^whsec_/);
      expect(places.filter((place) => place.includes(secret))).toEqual([]);
    }
    expect(rig.troubles).toEqual([]);
  });
});
