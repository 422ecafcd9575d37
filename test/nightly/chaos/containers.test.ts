/** R-MON-14: the short form of `npm run chaos -- --mode containers`. */
import { expect, test } from "vitest";
import { hasContainers, runContainers } from "./containers.ts";

test.skipIf(!hasContainers())(
  "of two containers on one data folder the second is refused, and takes over with all that was acknowledged when the first is killed",
  { timeout: 300_000 },
  async () => {
    const bookings = 6;
    const { acknowledged, problems } = await runContainers(bookings);
    expect(problems).toEqual([]);
    expect(acknowledged).toBe(2 * bookings);
  },
);
