/** How much of a page moves while it is being drawn: the browser's own cumulative layout shift. */
import type { Page } from "playwright-core";

/** Runs in the browser, before anything of a page. */
const script = `
  window.shifts = [];
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
      const what = sources.map(({ node }) => (node?.className ?? "") + " " + node?.textContent?.slice(0, 40));
      if (!hadRecentInput) window.shifts.push({ value, what });
    }
  }).observe({ type: "layout-shift", buffered: true });
`;

/** Begins to measure each document that a page opens. */
export async function watchShifts(page: Page): Promise<void> {
  await page.addInitScript({ content: script });
}

/** All that has moved since the document was opened, and what it was. */
export async function shiftsOf(page: Page): Promise<{ sum: number; what: string }> {
  const shifts = (await page.evaluate("shifts")) as { value: number; what: string[] }[];
  const sum = shifts.reduce((total, { value }) => total + value, 0);
  const what = shifts.map((each) => `${each.value.toFixed(4)} ${each.what.join(" | ")}`);
  return { sum, what: what.join("\n") };
}
