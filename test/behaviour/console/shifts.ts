/**
 * How much of a page moves while it is being drawn: the browser's own cumulative layout shift, also
 * within half a second of a click, for which the browser excuses a page.
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

/** All that has moved since the document was opened or this was asked last, and what it was. */
export async function shiftsOf(page: Page): Promise<{ sum: number; what: string }> {
  const shifts = (await page.evaluate("shifts.splice(0)")) as { value: number; what: string[] }[];
  const sum = shifts.reduce((total, { value }) => total + value, 0);
  const what = shifts.map((each) => `${each.value.toFixed(4)} ${each.what.join(" | ")}`);
  return { sum, what: what.join("\n") };
}
