/**
 * Vendors that refuse the operator's account: which callers may use them, and who is notified
 * (R-ERR-3).
 */
import { expect, test } from "vitest";
import { VendorHealth } from "../../../../src/task/work/vendor-health.ts";
import { TaskRefused, type VendorFault } from "../../../../src/provider/task.ts";

const place = { vendor: "v", vendor_model: "m" };
const other = { vendor: "v", vendor_model: "n" };

function refusal(fault?: VendorFault, isPassing = true): TaskRefused {
  return new TaskRefused("upstream_error", `because of ${fault}`, isPassing, fault && { fault });
}

function open() {
  const clock = { nowMs: 0 };
  const told: string[] = [];
  const standings = new VendorHealth({
    pause: (count) => 100 * (count + 1),
    onAlarm: ({ model, fault, isNew }) =>
      void told.push(`${model} ${fault}${isNew ? "" : " still"}`),
    onBack: ({ vendor_model: model }) => void told.push(`${model} is back`),
    clock: () => clock.nowMs,
  });
  return { clock, told, standings };
}

test("a refusing vendor gets one probe at a time, after growing pauses", () => {
  const { clock, told, standings } = open();
  expect(standings.pauseOf(place)).toBeUndefined();
  const refused = refusal("money");
  standings.onSubmitRefused(place, refused);
  // Was under way already.
  standings.onSubmitRefused(place, refusal("money"));
  expect(standings.pauseOf(place)).toEqual({ refused, waitMs: 100 });
  clock.nowMs = 100;
  expect(standings.pauseOf(place)).toBeUndefined();
  expect(standings.pauseOf(place)).toEqual({ refused, waitMs: 100 });
  standings.onSubmitRefused(place, refused);
  expect(standings.pauseOf(place)).toEqual({ refused, waitMs: 200 });
  clock.nowMs = 300;
  expect(standings.pauseOf(place)).toBeUndefined();
  standings.onSubmitAnswered(place);
  expect([standings.pauseOf(place), standings.pauseOf(place)]).toEqual([undefined, undefined]);
  standings.onSubmitAnswered(place);
  expect(told).toEqual(["m money", "m money still", "m money still", "m is back"]);
});

test("a probe without a reported outcome does not block the next probe", () => {
  const { clock, standings } = open();
  standings.onSubmitRefused(place, refusal("model"));
  clock.nowMs = 100;
  expect(standings.pauseOf(place)).toBeUndefined();
  clock.nowMs = 200;
  expect(standings.pauseOf(place)).toBeUndefined();
});

test("a lack of money pauses the whole vendor, a refused key or name one model", () => {
  const { standings } = open();
  standings.onSubmitRefused(place, refusal("credential"));
  expect(standings.pauseOf(other)).toBeUndefined();
  standings.onSubmitRefused(place, refusal("money"));
  expect(standings.pauseOf(other)).toMatchObject({ waitMs: 100 });
  expect(standings.pauseOf({ ...place, vendor: "w" })).toBeUndefined();
});

test("a vendor without capacity starts and ends no pause, and a refusal of the task itself ends it", () => {
  const { standings, told } = open();
  standings.onSubmitRefused(place, refusal());
  expect(standings.pauseOf(place)).toBeUndefined();
  standings.onSubmitRefused(place, refusal("model"));
  standings.onSubmitRefused(place, refusal());
  expect(standings.pauseOf(place)).toBeDefined();
  standings.onSubmitRefused(place, refusal(undefined, false));
  expect(standings.pauseOf(place)).toBeUndefined();
  expect(told).toEqual(["m model", "m is back"]);
});

test("a vendor that refuses polls raises one alarm until it answers", () => {
  const { standings, told } = open();
  standings.onPollRefused(place, "credential");
  standings.onPollRefused(other, "credential");
  standings.onPollRefused(place, "money");
  standings.onPollAnswered(place);
  standings.onPollRefused(place, "money");
  expect(told).toEqual(["m credential", "n credential still", "m money", "m money"]);
  expect(standings.pauseOf(place)).toBeUndefined();
});
