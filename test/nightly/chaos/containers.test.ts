/** R-MON-14: the short form of `npm run chaos -- --mode containers`. */
import { expect, test } from "vitest";
import { hasContainers, runContainers } from "./containers.ts";

test.skipIf(!hasContainers())(
  "two containers that share a data folder lose nothing that either of them acknowledged, and the second takes over when the first is killed",
  { timeout: 300_000 },
  async () => {
    const bookings = 6;
    const { acknowledged, problems } = await runContainers(bookings);
    expect(problems).toEqual([]);
    expect(acknowledged).toBe(2 * bookings);
  },
);
