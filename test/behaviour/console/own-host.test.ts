/**
 * A console with its own host (`UAS_CONSOLE_URL`) in a real browser: its pages call the API on
 * another one.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ConsoleRig, startConsole } from "./console-rig.ts";
import { findBrowser } from "./find-browser.ts";

const browser = findBrowser();

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

describe.runIf(browser !== undefined)("a console with its own host", () => {
  let rig: ConsoleRig;
  let page: Page;
  let consoleUrl = "";

  beforeAll(async () => {
    const port = await freePort();
    consoleUrl = `http://localhost:${port}`;
    rig = await startConsole(browser ?? "", "", {
      settings: { UAS_LISTEN: `127.0.0.1:${port}`, UAS_CONSOLE_URL: consoleUrl },
    });
    page = await rig.open();
    await page.goto((await rig.link()).replace(rig.url, consoleUrl));
    await page.getByRole("heading", { name: "Overview" }).waitFor();
  });

  afterAll(() => rig?.close());

  test("a console with its own host does not answer on the API's", async () => {
    const statuses = [`${rig.url}/console`, `${consoleUrl}/v1/models`, `${consoleUrl}/console`].map(
      async (address) => (await fetch(address)).status,
    );
    expect(await Promise.all(statuses)).toEqual([404, 404, 200]);
  });

  test("its playground calls the API on the other host, and shows the address there", async () => {
    await page.goto(`${consoleUrl}/console/playground?model=demo/instant`);
    const message = page.getByRole("textbox", { name: "Message", exact: true });
    await message.fill("Hello");
    const request = page.waitForRequest((each) => each.url().endsWith("/v1/chat/completions"));
    await message.press("Enter");
    expect(new URL((await request).url()).origin).toBe(rig.url);
    await page.getByText("You said: Hello").waitFor();
    const code = page.getByRole("region", { name: "curl", exact: true });
    expect(await code.textContent()).toContain(`${rig.url}/v1/chat/completions`);
  });

  test("its pages show images of the API, and its reference", async () => {
    await page.goto(`${consoleUrl}/console/playground?model=demo-image`);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    const image = page.getByRole("img", { name: "Result file 1" });
    await image.waitFor();
    expect(await image.getAttribute("src")).toContain(`${rig.url}/files/`);
    await expect.poll(() => image.evaluate(({ naturalWidth }) => naturalWidth)).toBeGreaterThan(0);
    await page.goto(`${consoleUrl}/console/reference`);
    await page.getByText("/v1/chat/completions").first().waitFor();
  });

  test("nothing of it was forbidden by the security policy, and no script failed", () => {
    expect(rig.troubles).toEqual([]);
  });
});
