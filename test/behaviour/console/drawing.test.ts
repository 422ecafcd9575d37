/** Rendering of pages: nothing moves, nothing is requested twice, nothing is covered. */
import { createClient } from "@connectrpc/connect";
import type { Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { allPaths, ready, visit } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";
import { shiftsOf, watchShifts } from "./shifts.ts";

const browser = findBrowser();

/** The most of a page that may move: a tenth of what is called good (0.1). */
const shiftMax = 0.01;

describe.runIf(browser !== undefined)("the console while it is drawn", () => {
  let rig: ConsoleRig;
  let page: Page;

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    page = await rig.open();
  });

  afterAll(() => rig?.close());

  test("a visitor without a session sees the sign-in form once, and the form stays", async () => {
    const asked: string[] = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/GetSession")) asked.push(request.url());
    });
    await page.goto(`${rig.url}/console/usage?range=7d`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByRole("textbox").first().waitFor();
    await page.waitForLoadState("networkidle");
    expect(asked).toHaveLength(1);
    expect(new URL(page.url()).searchParams.get("next")).toContain("/usage?range=7d");
  });

  test("where the system asks for reduced motion, nothing goes on moving", async () => {
    await page.goto(await rig.link());
    await page.getByText("Waiting for your first call").waitFor();
    expect(await page.locator(".animate-ping").count()).toBe(1);
    await expect.poll(() => page.evaluate("document.getAnimations().length")).toBe(0);
  });

  test("no page moves while it is drawn, empty and with calls, wide and narrow, by links and by addresses", async () => {
    await page.goto(await rig.link());
    await page.getByRole("heading", { name: "Overview" }).waitFor();
    const paths = await allPaths(page);
    await rig.keep(page);
    const empty = await shiftsOfAll(paths, 1280, visit);
    const keys = createClient(KeyService, rig.app.transport);
    const { secret } = await keys.createKey({ accountId: rig.accountId, name: "dev" });
    for (let count = 0; count < 3; count++) expect(await rig.call(secret)).toBe(200);
    const used = await shiftsOfAll(paths, 1280, load);
    const narrow = await shiftsOfAll(paths, 360, load);
    expect([...empty, ...used, ...narrow].join("\n")).toBe("");
  }, 300_000);

  /** Opens a page by its address: all of it is loaded and drawn anew. */
  async function load(of: Page, path: string): Promise<void> {
    await of.goto(`${rig.url}/console${path}`);
  }

  /**
   * The pages that move more than they may, each with what moves. @param go how one gets to each
   */
  async function shiftsOfAll(
    paths: readonly string[],
    width: number,
    go: typeof load,
  ): Promise<string[]> {
    const fresh = await rig.open({ width });
    await watchShifts(fresh);
    const pending = new Set<Request>();
    // Live views are never answered to the end.
    fresh.on("request", (each) => !each.url().endsWith("/TailCalls") && pending.add(each));
    fresh.on("requestfinished", (each) => pending.delete(each));
    fresh.on("requestfailed", (each) => pending.delete(each));
    const moved: string[] = [];
    // Links need a page that they stand on.
    if (go === visit) await load(fresh, "/");
    for (const path of paths) {
      await go(fresh, path);
      await ready(fresh);
      await expect.poll(() => pending.size).toBe(0);
      await fresh.evaluate(
        "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
      );
      const { sum, what } = await shiftsOf(fresh);
      if (sum >= shiftMax) moved.push(`${path} at ${width}: ${sum.toFixed(4)}\n${what}`);
    }
    await fresh.close();
    return moved;
  }

  test("the button that copies stands beside the code of the console", async () => {
    await page.setViewportSize({ width: 360, height: 900 });
    await page.goto(`${rig.url}/console/webhooks`);
    await ready(page);
    const blocks = page.locator("pre:has(+ span button)");
    expect(await blocks.count()).toBeGreaterThan(0);
    for (const block of await blocks.all()) {
      const code = await block.boundingBox();
      const button = await block.locator("+ span button").boundingBox();
      if (code === null || button === null) continue;
      expect(button.x).toBeGreaterThanOrEqual(code.x + code.width);
    }
  });
});
