/** The pages inside the console, and what has to be true of each. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { expect } from "vitest";

/** The paths of all pages inside, below `/console`: those of the navigation, and the settings. */
export async function allPaths(page: Page): Promise<string[]> {
  await page.locator("aside nav a").first().waitFor();
  const links = await page.locator("aside nav a").all();
  const paths = await Promise.all(links.map((link) => link.getAttribute("href")));
  return [...paths.map((path) => path?.replace(/^\/console\/?/, "/") ?? "/"), "/settings"];
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}

/**
 * Checks the accessibility of a page: WCAG 2.2 AA and more. Findings are checked again, because a
 * list that is rendered anew leaves parts without text for a moment.
 *
 * @param part selector of the checked part. Default: the whole page
 */
export async function barriers(page: Page, part = "html"): Promise<string[]> {
  if (!(await page.evaluate("'axe' in window"))) await page.evaluate(axe);
  const found = await look(page, part);
  return found.length === 0 ? found : look(page, part);
}

async function look(page: Page, part: string): Promise<string[]> {
  const tags = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']";
  const { violations } = (await page.evaluate(
    `axe.run(${JSON.stringify(part)}, { runOnly: ${tags}, preload: false, resultTypes: ['violations'] })`,
  )) as AxeResult;
  const path = new URL(page.url()).pathname;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(
      ({ html, failureSummary }) => `${path} ${id}: ${html.slice(0, 160)} ${failureSummary}`,
    ),
  );
}

/**
 * Goes to a page by the navigation, or from the address if it is not in there, and waits until it
 * is drawn.
 */
export async function visit(page: Page, path: string): Promise<void> {
  const link = page.locator(`nav a[href="/console${path === "/" ? "" : path}"]`).first();
  if ((await link.count()) > 0) await link.click();
  else await page.goto(new URL(`/console${path}`, page.url()).href);
  await page.waitForURL(
    (url) => url.pathname.replace(/\/$/, "") === `/console${path}`.replace(/\/$/, ""),
  );
  await page.locator("main#content h1").waitFor();
}

/** Waits until a page is drawn: nothing keeps the place of something else any more. */
export async function ready(page: Page): Promise<void> {
  await page.locator("h1").waitFor();
  await page.locator(".animate-pulse, [aria-busy=true]").first().waitFor({ state: "detached" });
}

/** By how many pixels a page is wider than its window. */
export async function overflow(page: Page): Promise<number> {
  return page.evaluate("document.documentElement.scrollWidth - window.innerWidth");
}

/** Where pictures of the pages go: for `npm run screenshots`. Empty if there are none. */
const pictures = process.env["UAS_SCREENSHOTS"] ?? "";

async function picture(page: Page, names: readonly string[]): Promise<void> {
  if (pictures === "") return;
  const name = names.join("-").replaceAll("/", "").replace(/-$/, "-overview");
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}

/** Visits every page, wide and narrow, and returns its faults. */
export async function faults(
  page: Page,
  { base, theme }: { base: string; theme: string },
): Promise<string[]> {
  await page.goto(`${base}/console/sign-in`);
  await ready(page);
  const found = await barriers(page);
  await page.goto(`${base}/console`);
  for (const path of await allPaths(page)) {
    await visit(page, path);
    found.push(...(await faultsOf(page, { theme, path })));
  }
  return found;
}

/** Returns the faults of the shown page, wide and narrow. */
export async function faultsOf(
  page: Page,
  { theme, path }: { theme: string; path: string },
): Promise<string[]> {
  await ready(page);
  await picture(page, [theme, "wide", path]);
  // The frame around it is the same on every page.
  const found = await barriers(page, path === "/" ? "html" : "#content");
  await page.setViewportSize({ width: 360, height: 900 });
  // Charts notice a frame later how much room they have.
  await expect.poll(() => overflow(page), { message: `${path} is too wide` }).toBe(0);
  await picture(page, [theme, "narrow", path]);
  await page.setViewportSize({ width: 1280, height: 900 });
  return found;
}
