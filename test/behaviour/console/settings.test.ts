/** Setting up an authenticator in a real browser, by what a camera sees (R-CON-1). */
import type { Page } from "playwright-core";
import { encode } from "uqr";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { totpCode } from "../../../src/account/user/totp.ts";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { barriers, faultsOf } from "./every-page.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

describe.runIf(browser !== undefined)("an authenticator", () => {
  let rig: ConsoleRig;
  let page: Page;
  /** Every secret that was shown. */
  const secrets: string[] = [];

  beforeAll(async () => {
    rig = await startConsole(browser ?? "");
    page = await rig.signIn();
  });

  afterAll(() => rig?.close());

  const qrName = /^QR code|二维码/;

  /** Opens the dialog and makes a secret; resolves with it. */
  async function start(view: Page): Promise<string> {
    await view.goto(`${rig.url}/console/settings`);
    await view.getByRole("button", { name: /^(Set up|启用)$/ }).click();
    await view.getByRole("button", { name: /^(Create secret|生成密钥)$/ }).click();
    await view.getByRole("img", { name: qrName }).waitFor();
    const secret = await view.getByText(/^[A-Z2-7]{32}$/).textContent();
    secrets.push(secret ?? "");
    return secret ?? "";
  }

  /** Returns for each module of the code whether its middle is dark. */
  const drawn = (): Promise<unknown> =>
    page.evaluate(`(() => {
      const svg = document.querySelector("[role=dialog] svg[role=img]");
      const path = svg.querySelector("path");
      const modules = Array.from({ length: svg.viewBox.baseVal.width }, (_, index) => index);
      return modules.map((y) =>
        modules.map((x) => path.isPointInFill(new DOMPoint(x + 0.5, y + 0.5))));
    })()`);

  test.for([
    { theme: "light", language: "en" },
    { theme: "dark", language: "zh" },
  ] as const)(
    "its dialog is accessible and fits 360 pixels: $theme, $language",
    { timeout: 60_000 },
    async (view) => {
      const seen = await rig.open(view);
      await start(seen);
      expect(await barriers(seen, "[role=dialog]")).toEqual([]);
      const faults = await faultsOf(seen, { theme: view.theme, path: "/totp" });
      expect(faults).toEqual([]);
      await seen.context().close();
    },
  );

  test("its QR code is the secret's address, dark on light, and its codes count", async () => {
    const secret = await start(page);
    const uri = await page.getByRole("link", { name: "Open in an app" }).getAttribute("href");
    expect(uri).toMatch(/^otpauth:\/\/totp\//);
    expect(new URL(uri ?? "").searchParams.get("secret")).toBe(secret);
    expect(await drawn()).toEqual(encode(uri ?? "", { ecc: "M", border: 4 }).data);
    const colours = await page.evaluate(
      "[...document.querySelectorAll('[role=dialog] svg[role=img] > *')].map((part) => getComputedStyle(part).fill)",
    );
    expect(colours).toEqual(["rgb(255, 255, 255)", "rgb(0, 0, 0)"]);
    await page
      .getByRole("textbox", { name: "Authenticator code" })
      .fill(totpCode(secret, Math.floor(Date.now() / 30_000)));
    await page.keyboard.press("Enter");
    await page.getByText("Authenticator app set up").waitFor();
    await page.getByRole("button", { name: "Remove" }).waitFor();
  });

  test("its secret is in no storage, no address, no log and, once it counts, not on the page", async () => {
    const kept = await page.evaluate(
      "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, history.state])",
    );
    const places = [await page.content(), String(kept), ...rig.addresses, ...rig.log];
    expect(secrets).toHaveLength(3);
    for (const secret of secrets) {
      expect(places.filter((place) => place.includes(secret))).toEqual([]);
    }
  });

  test("nothing was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
