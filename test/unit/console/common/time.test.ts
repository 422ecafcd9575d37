/** Times as clocks of a zone show them: which moments they are. */
import { expect, test } from "vitest";
import {
  dayAfter,
  exactTimeText,
  momentIn,
  wallIn,
  wallTime,
  zoneOf,
} from "../../../../console/src/common/time.ts";

const iso = (zone: string, wall: string): string => new Date(momentIn(zone, wall)).toISOString();

test("a wall time is a moment of its zone, on both sides of a change of the clocks", () => {
  expect(iso("Asia/Shanghai", "2026-11-21T03:24")).toBe("2026-11-20T19:24:00.000Z");
  expect(iso("UTC", "2026-11-21")).toBe("2026-11-21T00:00:00.000Z");
  expect(iso("Asia/Kathmandu", "2026-11-21")).toBe("2026-11-20T18:15:00.000Z");
  expect(iso("America/New_York", "2026-03-08")).toBe("2026-03-08T05:00:00.000Z");
  expect(iso("America/New_York", "2026-03-09")).toBe("2026-03-09T04:00:00.000Z");
  expect(iso("Pacific/Kiritimati", "2026-01-01")).toBe("2025-12-31T10:00:00.000Z");
  // Shown twice: the first one.
  expect(iso("Europe/Berlin", "2026-10-25T02:30")).toBe("2026-10-25T00:30:00.000Z");
  // Never shown: an hour is left out.
  expect(iso("Europe/Berlin", "2026-03-29T02:30")).toBe("2026-03-29T01:30:00.000Z");
});

test("a moment that a wall-clock time names is shown as that time again", () => {
  for (const zone of ["Asia/Shanghai", "America/New_York", "Australia/Lord_Howe", "UTC"]) {
    for (const wall of ["2026-01-01T00:00", "2026-07-01T23:59", "2026-11-01T12:00"]) {
      expect([zone, wallIn(zone, momentIn(zone, wall))]).toEqual([zone, wall]);
    }
  }
  expect(exactTimeText(0, "Asia/Kolkata")).toBe("1970-01-01 05:30:00 +05:30");
  expect(exactTimeText(0, "America/New_York")).toBe("1969-12-31 19:00:00 -05:00");
  expect(dayAfter("2026-02-28")).toBe("2026-03-01");
  expect(dayAfter("2026-03-01", -1)).toBe("2026-02-28");
});

test("what is no time and no zone is dropped", () => {
  expect(wallTime("2026-02-30")).toBeUndefined();
  expect(wallTime("2026-02-03T24:61")).toBeUndefined();
  expect(wallTime("yesterday")).toBeUndefined();
  expect(wallTime("2026-02-03T04:05")).toBe("2026-02-03T04:05");
  expect(zoneOf("Mars/Olympus")).toBeUndefined();
  expect(zoneOf("utc")).toBe("UTC");
});
