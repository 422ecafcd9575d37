/**
 * The search parameters of pages: what a reload and a shared address bring back, and what is
 * dropped (R-CON-1).
 */
import { anything, array, assert, dictionary, oneof, property, string } from "fast-check";
import { expect, test } from "vitest";
import {
  readAccountSearch,
  readAllCallSearch,
  readAuditSearch,
  readCallSearch,
  readCodeSearch,
  readDeliverySearch,
  readKeySearch,
  readLedgerSearch,
  readModelSearch,
  readNext,
  readTaskSearch,
  readUsageSearch,
} from "../../../../console/src/common/search.ts";

const readers = [
  readAccountSearch,
  readAllCallSearch,
  readAuditSearch,
  readCallSearch,
  readCodeSearch,
  readDeliverySearch,
  readKeySearch,
  readLedgerSearch,
  readModelSearch,
  readNext,
  readTaskSearch,
  readUsageSearch,
];

/** Names that at least one page reads, so that random searches hit them. */
const names = ["from", "to", "zone", "range", "status", "cost", "next", "create", "state", "model"];

const good = {
  from: "2026-11-01",
  to: "2026-11-02T10:00",
  zone: "America/New_York",
  status: "4xx",
  ending: "key_disabled",
  vendor: "sim",
  cost: "0.01",
};

test("a call log is opened with every valid filter of its address", () => {
  expect(readCallSearch(good)).toStrictEqual(good);
  expect(readAllCallSearch({ ...good, account: "a" })).toStrictEqual({ ...good, account: "a" });
});

test("a filter without a valid value is dropped by itself, and the others stay", () => {
  const bad = { from: "x", zone: "x", status: "9xx", ending: "x", cost: "much", vendor: "" };
  expect(readCallSearch(bad)).toStrictEqual({});
  expect(readCallSearch({ ...bad, model: "m" })).toStrictEqual({ model: "m" });
  expect(readCallSearch({ cost: "-1" })).toStrictEqual({});
  expect(readLedgerSearch({ range: "1y", kind: "charge" })).toStrictEqual({ kind: "charge" });
  expect(readKeySearch({ create: "yes" })).toStrictEqual({});
});

test("digits are a text, although the router reads them as a number", () => {
  expect(readAccountSearch({ q: 42 })).toStrictEqual({ q: "42" });
  expect(readCallSearch({ cost: 0.5 })).toStrictEqual({ cost: "0.5" });
});

test("usage takes whole days, and a span with one end or with its ends reversed is dropped", () => {
  expect(readUsageSearch({ from: "2026-11-01", to: "2026-11-30T10:00" })).toStrictEqual({
    from: "2026-11-01",
    to: "2026-11-30",
  });
  expect(readUsageSearch({ from: "2026-11-30", to: "2026-11-01", zone: "UTC" })).toStrictEqual({
    zone: "UTC",
  });
  expect(readUsageSearch({ from: "2026-11-30" })).toStrictEqual({});
});

test("the page after a sign-in is a path of the console, never another site", () => {
  expect(readNext({ next: "/usage?range=7d" })).toStrictEqual({ next: "/usage?range=7d" });
  for (const next of ["https://evil.example", "//evil.example", "/\\evil.example", "usage", 1]) {
    expect(readNext({ next })).toStrictEqual({});
  }
});

test("no address breaks a page, and what is read is read the same again", () => {
  const raw = dictionary(string(), anything());
  const known = array(oneof(...names.map((name) => string().map((value) => [name, value]))));
  assert(
    property(raw, known, (some, more) => {
      const search = { ...some, ...(Object.fromEntries(more) as Record<string, unknown>) };
      for (const read of readers) {
        const once = read(search);
        expect(read(once)).toStrictEqual(once);
      }
    }),
  );
});
