/** The charge of a call (R-MON-8). */
import { create } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Usage, UsageSchema, UsageSource } from "../../../../gen/uas/type/v1/usage_pb.ts";
import { callCost } from "../../../../src/billing/prices/cost.ts";
import { meter, meterInput } from "../../../../src/calls/pipeline/metering.ts";
import { estimateTokens } from "../../../../src/tokens/estimate.ts";
import { priceDefault } from "../../../support/gateway.ts";

function usage(inputTokens: number, outputTokens: number): Usage {
  return create(UsageSchema, { inputTokens, outputTokens });
}

describe("the usage to charge (R-MON-8)", () => {
  it("the usage to charge is the vendor's report where there is one", () => {
    const reported = usage(11, 7);
    expect(meter({ reported, inputTokens: 1_000, textBytes: 4_000, isComplete: true })).toEqual({
      usage: reported,
      source: UsageSource.UPSTREAM,
      isCharged: true,
    });
  });

  it("the usage to charge is charged where the vendor reported output without text, as for a tool call", () => {
    const metered = meter({
      reported: usage(11, 7),
      inputTokens: 3,
      textBytes: 0,
      isComplete: true,
    });
    expect(metered.isCharged).toBe(true);
  });

  it("includes received text although the vendor reported no output", () => {
    const metered = meter({
      reported: usage(11, 0),
      inputTokens: 3,
      textBytes: 5,
      isComplete: true,
    });
    expect(metered).toMatchObject({ isCharged: true, source: UsageSource.ESTIMATED });
    expect(metered.usage).toMatchObject({ inputTokens: 11, outputTokens: 2 });
  });

  it("includes the input of a request without output, which warms the vendor's cache", () => {
    const warmed = { reported: usage(11, 0), inputTokens: 3, textBytes: 0, isTextRequested: false };
    expect(meter({ ...warmed, isComplete: true }).isCharged).toBe(true);
    expect(meter({ ...warmed, isComplete: false }).isCharged).toBe(false);
  });

  it("the usage to charge is not charged for an empty reply, but is recorded", () => {
    const reported = usage(11, 0);
    const metered = meter({ reported, inputTokens: 3, textBytes: 0, isComplete: true });
    expect(metered).toEqual({ usage: reported, source: UsageSource.UPSTREAM, isCharged: false });
  });

  it("the usage to charge is empty where the vendor failed before its first content", () => {
    expect(
      meter({ reported: undefined, inputTokens: 1_000, textBytes: 0, isComplete: true }),
    ).toEqual({
      usage: undefined,
      source: UsageSource.UNSPECIFIED,
      isCharged: false,
    });
  });

  it("the charged usage of a cut reply is the counted request and one token for each four bytes of text, rounded up", () => {
    const metered = meter({
      reported: undefined,
      inputTokens: 101,
      textBytes: 9,
      isComplete: true,
    });
    expect(metered).toMatchObject({ source: UsageSource.ESTIMATED, isCharged: true });
    expect(metered.usage).toMatchObject({ inputTokens: 101, outputTokens: 3 });
  });

  it("the usage to charge has the counted output tokens where the text was counted", () => {
    const delivered = { reported: undefined, inputTokens: 5, textBytes: 9, isComplete: true };
    expect(meter({ ...delivered, outputTokens: 7 }).usage).toMatchObject({ outputTokens: 7 });
  });

  it.each([
    [0, 0],
    [1, 1],
    [4, 1],
    [5, 2],
  ])("%i bytes are charged as %i tokens", (bytes, tokens) => {
    expect(estimateTokens(bytes)).toBe(tokens);
  });

  it("the usage to charge has the text that came after the vendor's figures, at one token for each four bytes", () => {
    const delivered = { reported: usage(11, 9), textBytes: 2_000, isComplete: true };
    expect(meter(delivered).usage?.outputTokens).toBe(9);
    const metered = meter({ ...delivered, uncountedTextBytes: 1_990 });
    expect(metered).toMatchObject({ source: UsageSource.ESTIMATED, isCharged: true });
    expect(metered.usage).toMatchObject({ inputTokens: 11, outputTokens: 9 + 498 });
    const most = { ...delivered, reported: usage(11, 2 ** 31 - 1), uncountedTextBytes: 8 };
    expect(meter(most).usage?.outputTokens).toBe(2 ** 31 - 1);
  });

  it("the usage to charge is charged exactly where there was output, and never more for less text", () => {
    const count = fc.nat({ max: 2 ** 31 - 1 });
    const reported = fc.option(fc.tuple(count, count), { nil: undefined });
    const bytes = fc.nat({ max: 64 * 1024 * 1024 });
    fc.assert(
      fc.property(reported, count, bytes, (counts, inputTokens, textBytes) => {
        const known = counts && usage(...counts);
        const metered = meter({ reported: known, inputTokens, textBytes, isComplete: true });
        expect(metered.isCharged).toBe(textBytes > 0 || (known?.outputTokens ?? 0) > 0);
        if (metered.isCharged) expect(metered.usage).toBeDefined();
        const isCounted = known !== undefined && (known.outputTokens > 0 || textBytes === 0);
        expect(metered.source === UsageSource.UPSTREAM).toBe(isCounted);
        if (metered.source !== UsageSource.ESTIMATED || metered.usage === undefined) return;
        const more = meter({
          reported: known,
          inputTokens,
          textBytes: textBytes + 1,
          isComplete: true,
        });
        const cost = callCost(priceDefault, metered.usage);
        expect(more.usage && callCost(priceDefault, more.usage)).toBeGreaterThanOrEqual(cost);
      }),
    );
  });
});

describe("embeddings", () => {
  it("embeddings are charged by the reported input, complete or not", () => {
    for (const isComplete of [true, false]) {
      const delivered = { reported: usage(5, 0), inputTokens: 100, textBytes: 0, isComplete };
      expect(meterInput(delivered)).toMatchObject({
        usage: { inputTokens: 5, outputTokens: 0 },
        source: UsageSource.UPSTREAM,
        isCharged: true,
      });
    }
  });

  it("embeddings are estimated where the vendor reported nothing, and free where they did not arrive", () => {
    const delivered = { reported: undefined, inputTokens: 3, textBytes: 0 };
    expect(meterInput({ ...delivered, isComplete: true })).toMatchObject({
      usage: { inputTokens: 3, outputTokens: 0 },
      source: UsageSource.ESTIMATED,
      isCharged: true,
    });
    expect(meterInput({ ...delivered, isComplete: false })).toMatchObject({ isCharged: false });
  });
});

describe("a reply without text (R-MON-16)", () => {
  const empty = { textBytes: 0, isComplete: true } as const;

  it.each([
    ["web searches", create(UsageSchema, { inputTokens: 50_000, webSearches: 10 }), undefined],
    ["a written cache", create(UsageSchema, { inputTokens: 9, cacheWriteTokens: 9 }), undefined],
    ["audio", create(UsageSchema, { inputTokens: 9, audioOutputTokens: 5 }), undefined],
    ["calls of tools that usage does not count", usage(9, 0), { codeExecutions: 1 }],
    ["images", usage(9, 0), { images: 1 }],
  ])("is charged if it has %s", (_what, reported, units) => {
    expect(meter({ ...empty, reported, units }).isCharged).toBe(true);
  });

  it("is charged if the request asked for data about its own text", () => {
    expect(meter({ ...empty, reported: usage(9, 0), isTextRequested: false }).isCharged).toBe(true);
  });

  it("is free if it has nothing", () => {
    expect(meter({ ...empty, reported: usage(9, 0), units: { images: 0 } }).isCharged).toBe(false);
  });
});
