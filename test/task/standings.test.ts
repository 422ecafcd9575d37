/** Vendors that refuse the operator's own account: who may ask them, and who is told (R-ERR-3). */
import { expect, test } from "vitest";
import { Standings } from "../../src/task/vendor-health.ts";
import { TaskRefused } from "../../src/vendor/task.ts";
import type { VendorFault } from "../../src/vendor/vendor.ts";

const place = { vendor: "v", vendor_model: "m" };
const other = { vendor: "v", vendor_model: "n" };

function refusal(fault?: VendorFault, isPassing = true): TaskRefused {
  return new TaskRefused("upstream_error", `because of ${fault}`, isPassing, fault && { fault });
}

function open() {
  const clock = { nowMs: 0 };
  const told: string[] = [];
  const standings = new Standings({
    pause: (count) => 100 * (count + 1),
    onAlarm: ({ model, fault, isNew }) =>
      void told.push(`${model} ${fault}${isNew ? "" : " still"}`),
    onBack: ({ vendor_model: model }) => void told.push(`${model} is back`),
    clock: () => clock.nowMs,
  });
  return { clock, told, standings };
}

test("one task asks at a time, after pauses that grow", () => {
  const { clock, told, standings } = open();
  expect(standings.pausedBy(place)).toBeUndefined();
  const refused = refusal("money");
  standings.refused(place, refused);
  // Was under way already.
  standings.refused(place, refusal("money"));
  expect(standings.pausedBy(place)).toEqual({ refused, waitMs: 100 });
  clock.nowMs = 100;
  expect(standings.pausedBy(place)).toBeUndefined();
  expect(standings.pausedBy(place)).toEqual({ refused, waitMs: 100 });
  standings.refused(place, refused);
  expect(standings.pausedBy(place)).toEqual({ refused, waitMs: 200 });
  clock.nowMs = 300;
  expect(standings.pausedBy(place)).toBeUndefined();
  standings.answered(place);
  expect([standings.pausedBy(place), standings.pausedBy(place)]).toEqual([undefined, undefined]);
  standings.answered(place);
  expect(told).toEqual(["m money", "m money still", "m money still", "m is back"]);
});

test("whose answer nobody heard keeps nobody else from asking", () => {
  const { clock, standings } = open();
  standings.refused(place, refusal("model"));
  clock.nowMs = 100;
  expect(standings.pausedBy(place)).toBeUndefined();
  clock.nowMs = 200;
  expect(standings.pausedBy(place)).toBeUndefined();
});

test("money is the matter of a vendor, a key and a name those of one model", () => {
  const { standings } = open();
  standings.refused(place, refusal("credential"));
  expect(standings.pausedBy(other)).toBeUndefined();
  standings.refused(place, refusal("money"));
  expect(standings.pausedBy(other)).toMatchObject({ waitMs: 100 });
  expect(standings.pausedBy({ ...place, vendor: "w" })).toBeUndefined();
});

test("a vendor without room pauses nothing and ends no pause; a judgement of the task does", () => {
  const { standings, told } = open();
  standings.refused(place, refusal());
  expect(standings.pausedBy(place)).toBeUndefined();
  standings.refused(place, refusal("model"));
  standings.refused(place, refusal());
  expect(standings.pausedBy(place)).toBeDefined();
  standings.refused(place, refusal(undefined, false));
  expect(standings.pausedBy(place)).toBeUndefined();
  expect(told).toEqual(["m model", "m is back"]);
});

test("of a vendor that does not tell of its tasks the operator hears once, until it does", () => {
  const { standings, told } = open();
  standings.untold(place, "credential");
  standings.untold(other, "credential");
  standings.untold(place, "money");
  standings.told(place);
  standings.untold(place, "money");
  expect(told).toEqual(["m credential", "n credential still", "m money", "m money"]);
  expect(standings.pausedBy(place)).toBeUndefined();
});
