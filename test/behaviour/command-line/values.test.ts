/** The small languages of arguments: amounts, percentages, times. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { InvalidArgumentError } from "commander";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  orWord,
  percentArgument,
  percentText,
  signedUsdArgument,
  usdText,
  whenArgument,
} from "../../../src/cli/values.ts";
import { amountNanosMax, formatUsd } from "../../../src/core/money.ts";

const nowMs = Date.parse("2026-11-21T09:30:00.000Z");

function read(parse: (text: string) => unknown, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    expect(error).toBeInstanceOf(InvalidArgumentError);
    return undefined;
  }
}

describe("an amount with a sign", () => {
  it("R-MON-1: an amount with a sign is read as it is written, to the nano-USD", () => {
    const nanos = fc.bigInt({ min: -amountNanosMax, max: amountNanosMax });
    fc.assert(
      fc.property(nanos, (amountNanos) => {
        const money = signedUsdArgument(formatUsd(amountNanos));
        expect(money).toMatchObject({ currencyCode: "USD", amountNanos });
        expect(usdText(money)).toBe(formatUsd(amountNanos));
      }),
    );
  });

  it.each(["", "-", "+", "--1", "-+1", "1-", "- 1", "1e3", "-1.0000000001", "−1"])(
    "an amount with a sign is not read from %j",
    (text) => expect(read(signedUsdArgument, text)).toBeUndefined(),
  );
});

describe("a percentage", () => {
  it("a percentage is read as it is written, to the basis point, with its sign or without", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000 }), (bp) => {
        expect(percentArgument(percentText(bp))).toBe(bp);
        expect(percentArgument(`${percentText(bp)}%`)).toBe(bp);
      }),
    );
  });

  it.each(["", "%", "-1", "100.01", "101", "12.345", "1e1", " 5", "5 %", ".5", "5.", "٥"])(
    "a percentage is not read from %j",
    (text) => expect(read(percentArgument, text)).toBeUndefined(),
  );
});

describe("a time", () => {
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

  it("a time counts from now where it is a length", () => {
    const unit = fc.constantFrom("m", "h", "d", "w");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 999_999 }), unit, (count, each) => {
        expect(timestampMs(whenArgument(`${count}${each}`, nowMs))).toBe(
          nowMs + count * unitMs[each],
        );
      }),
    );
  });

  it("a time is that moment where it is written out, whatever the offset", () => {
    const moment = fc.date({
      min: new Date("0001-01-02"),
      max: new Date("9999-12-30"),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(moment, fc.integer({ min: -23, max: 23 }), (date, hours) => {
        const offset = `${hours < 0 ? "-" : "+"}${String(Math.abs(hours)).padStart(2, "0")}:00`;
        const local = new Date(date.getTime() + hours * unitMs.h).toISOString().slice(0, -1);
        expect(timestampMs(whenArgument(`${local}${offset}`))).toBe(date.getTime());
        expect(timestampMs(whenArgument(date.toISOString()))).toBe(date.getTime());
        const day = date.toISOString().slice(0, 10);
        expect(timestampMs(whenArgument(day))).toBe(Date.parse(day));
      }),
    );
  });

  it.each([
    "",
    "0d",
    "-1d",
    "1y",
    "1.5h",
    "1 d",
    "d",
    "1000000d",
    "2027-02-30",
    "2027-13-01",
    "2027-1-1",
    "27-01-01",
    "2027-01-31T09:00:00",
    "2027-01-31T25:00:00Z",
    "tomorrow",
  ])("a time is not read from %j", (text) =>
    expect(read((each) => whenArgument(each, nowMs), text)).toBeUndefined(),
  );
});

it("a word can stand for nothing", () => {
  const parse = orWord("off", percentArgument);
  expect([parse("off"), parse("5")]).toEqual([false, 500]);
  expect(() => parse("OFF")).toThrow(InvalidArgumentError);
});
