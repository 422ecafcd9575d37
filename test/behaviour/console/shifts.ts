/**
 * Measures how much of a page moves while it is rendered: the browser's cumulative layout shift,
 * including the half second after a click that browsers exclude.
 */
import type { Page } from "playwright-core";

/** Runs in the browser, before anything of a page. */
const script = `
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) {
      const what = sources.map(({ node }) => (node?.className ?? "") + " " + node?.textContent?.slice(0, 40));
      window.shifts.push({ value, what });
    }
  }).observe({ type: "layout-shift", buffered: true });
`;

/** Begins to measure each document that a page opens. */
export async function watchShifts(page: Page): Promise<void> {
  await page.addInitScript({ content: script });
}

/** Returns all shifts since the document was opened or since the last call, with their elements. */
export async function shiftsOf(page: Page): Promise<{ sum: number; what: string }> {
  const shifts = (await page.evaluate("shifts.splice(0)")) as { value: number; what: string[] }[];
  const sum = shifts.reduce((total, { value }) => total + value, 0);
  const what = shifts.map((each) => `${each.value.toFixed(4)} ${each.what.join(" | ")}`);
  return { sum, what: what.join("\n") };
}
