/**
 * The details of a call in a real browser: what it can be repeated with, and who could not take it
 * (R-CON-1).
 */
import { createClient } from "@connectrpc/connect";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { copiedBy, pasted } from "./clipboard.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { barriers, overflow } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

/** A model whose first vendor is unreachable. */
const awayFirst = `  away/first:
    type: TEXT
    routes: [{ vendor: away, model: x }, { vendor: demo, model: instant }]
    max_output_tokens: 64
    price: { input: "1", output: "1" }
`;
const away = "  away: { kind: openai-compatible, base_url: http://127.0.0.1:1/v1 }\n";

describe.runIf(browser !== undefined)("the details of a call", () => {
  let rig: ConsoleRig;
  let page: Page;
  let secret: string;

  beforeAll(async () => {
    rig = await startConsole(browser ?? "", awayFirst, { vendors: away });
    page = await rig.signIn();
    const keys = createClient(KeyService, rig.app.transport);
    ({ secret } = await keys.createKey({ accountId: rig.accountId, name: "programs" }));
  });

  afterAll(() => rig?.close());

  const dialog = () => page.getByRole("dialog");
  const copyCurl = () => dialog().getByRole("button", { name: /^(Copy as curl|Copied)$/ });

  /** Calls the gateway, and opens the call that came of it. */
  async function openCallOf(path: string, body: object): Promise<void> {
    const requestId = crypto.randomUUID();
    const reply = await fetch(`${rig.url}${path}`, {
      method: "POST",
      headers: {
        ...{ authorization: `Bearer ${secret}`, "content-type": "application/json" },
        "x-request-id": requestId,
      },
      body: JSON.stringify(body),
    });
    await reply.arrayBuffer();
    const log = createClient(CallService, rig.app.transport);
    const find = () => log.listCalls({ accountId: rig.accountId, filter: { requestId } });
    await expect.poll(async () => (await find()).calls.length).toBe(1);
    const [call] = (await find()).calls;
    await page.goto(`${rig.url}/console/calls?call=${call?.callId}`);
    await dialog().getByText("Reproduce this request").waitFor();
  }

  test("a call is copied as a curl of its endpoint, model and style, which runs", async () => {
    const messages = [{ role: "user", content: "secret words" }];
    await openCallOf("/v1/messages", { model: "demo/instant", max_tokens: 9, messages });
    await dialog().getByText("The content of calls is not stored").waitFor();
    const curl = await copiedBy(page, copyCurl());
    expect(curl).not.toContain("secret words");
    expect(curl).not.toContain(secret);
    const reply = await pasted(curl.replace("<your message>", "Hello there"), secret);
    expect(JSON.parse(reply)).toMatchObject({
      type: "message",
      content: [{ text: expect.stringContaining("You said: Hello there") as string }],
    });
    expect(await dialog().getByText("Failed attempts").count()).toBe(0);
  });

  test("a streamed call is repeated as a stream", async () => {
    const body = { model: "demo/instant", input: "Hi", stream: true };
    await openCallOf("/v1/responses", body);
    const reply = await pasted(await copiedBy(page, copyCurl()), secret);
    expect(reply).toContain("event: response.completed");
  });

  test("vendors that could not take the call are named, with why and how long that took", async () => {
    const messages = [{ role: "user", content: "Hi" }];
    await openCallOf("/v1/chat/completions", { model: "away/first", messages });
    const tried = dialog().locator("section").filter({ hasText: "Failed attempts" });
    await tried.getByText("upstream_error").waitFor();
    expect(await tried.getByRole("listitem").allTextContents()).toEqual([
      expect.stringMatching(/^away xupstream_error\d+ ms$/),
    ]);
  });

  test("a vendor whose failures another one hides is shown as failing, with why (R-RTE-3)", async () => {
    const view = await rig.open({ width: 360 });
    await view.goto(`${rig.url}/console/vendors`);
    const heading = view.getByRole("heading", { name: "away", exact: true });
    const card = view.locator("section").filter({ has: heading });
    await card.getByText("Failing", { exact: true }).waitFor();
    await card.getByRole("row").filter({ hasText: "x" }).getByText("1 of 1").waitFor();
    await card.getByText("connect", { exact: true }).waitFor();
    expect([await barriers(view), await overflow(view)]).toEqual([[], 0]);
  });

  test("the curl of a task has example parameters, and runs", async () => {
    const imageParams = { prompt: "A lake" };
    const made = await fetch(`${rig.url}/api/ai/tasks`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({ modelKey: "demo-image", imageParams }),
    });
    expect(made.status).toBe(200);
    const row = page.getByRole("row").filter({ hasText: "demo-image" });
    await expect
      .poll(
        async () => {
          await page.goto(`${rig.url}/console/calls`);
          await page.getByRole("row").filter({ hasText: "demo/instant" }).first().waitFor();
          return row.count();
        },
        { timeout: 30_000 },
      )
      .toBe(1);
    await row.getByRole("button", { name: /^Open the call/ }).click();
    await dialog().getByText("with example parameters").waitFor();
    await dialog().getByText("imageParams").waitFor();
    const reply = await pasted(await copiedBy(page, copyCurl()), secret);
    expect(JSON.parse(reply)).toMatchObject({ modelKey: "demo-image", status: "progress" });
  });

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)("the details are accessible and fit 360 pixels: $theme, $language", async (view) => {
    const seen = await rig.open({ ...view, width: 360 });
    await seen.goto(page.url());
    await seen.getByRole("dialog").getByRole("region").waitFor();
    expect(await barriers(seen, "[role=dialog]")).toEqual([]);
    expect(await overflow(seen)).toBe(0);
    await seen.context().close();
  });

  test("nothing was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
