import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { UsageSchema } from "../../../../gen/uas/type/v1/usage_pb.ts";
import {
  vendorInputTokens,
  chargeablePart,
  isPlausible,
  type PlausibleFacts,
} from "../../../../src/calls/pipeline/plausible.ts";

const facts: PlausibleFacts = {
  inputTokens: 1_000,
  maxTokens: 100,
  isLimited: true,
  reasoningTokens: 0,
  addedInputTokens: 0,
  textBytes: 3,
};
const usage = (inputTokens: number, outputTokens: number) =>
  create(UsageSchema, { inputTokens, outputTokens });

describe("a usage that a request and its reply cannot have (R-MON-15)", () => {
  it.each([
    ["input far above the request", 2_000_000_000, 1],
    ["output far above the limit and the text", 10, 2_147_483_647],
    ["output just above the limit and the text", 10, 101],
  ])("is implausible: %s", (_name, input, output) => {
    expect(isPlausible(usage(input, output), facts)).toBe(false);
  });

  it.each([
    ["a vendor's template", usage(9_000, 100), {}],
    ["text of short tokens beyond the limit", usage(10, 900), { textBytes: 900 }],
    ["reasoning outside the limit", usage(10, 5_000), { reasoningTokens: 8_000 }],
    ["a stored conversation", usage(900_000, 1), { addedInputTokens: 1_000_000 }],
    ["twice the model's maximum without a limit", usage(10, 200), { isLimited: false }],
  ])("is plausible: %s", (_name, reported, more) => {
    expect(isPlausible(reported, { ...facts, ...more })).toBe(true);
  });

  it("charges what is held for, or twice that without a limit, and the delivered text", () => {
    const lie = usage(2_000_000_000, 2_147_483_647);
    const tokensOf = (more: Partial<PlausibleFacts>) => {
      const { inputTokens, outputTokens } = chargeablePart(lie, { ...facts, ...more });
      return [inputTokens, outputTokens];
    };
    expect(tokensOf({})).toEqual([1_000, 100]);
    expect(tokensOf({ isLimited: false })).toEqual([2_000, 200]);
    expect(tokensOf({ textBytes: 4_000 })).toEqual([1_000, 1_000]);
  });

  it("has all input once more for each call of a tool that the vendor runs", () => {
    const features = {
      ...{ hasAudioInput: false, hasAudioOutput: false, hasImageOutput: false, toolInputTokens: 0 },
      ...{ webSearches: 2, codeExecutions: 1, unreported: {}, edits: [] },
    };
    expect(vendorInputTokens(features, false, 1_000)).toBe(4_000);
    expect(vendorInputTokens(undefined, true, 1_000)).toBe(1_000);
    expect(vendorInputTokens(undefined, false, 1_000)).toBe(0);
  });

  it("is never that of a vendor that counts what it read and wrote, whatever its tokens are", () => {
    const count = fc.integer({ min: 0, max: 100_000 });
    fc.assert(
      fc.property(count, count, count, fc.boolean(), (input, limit, text, isLimited) => {
        const honest = {
          ...facts,
          inputTokens: input,
          maxTokens: limit,
          textBytes: text,
          isLimited,
        };
        // An upper bound of the input is held for, and a token has at least one byte.
        expect(isPlausible(usage(input, Math.min(limit, text)), honest)).toBe(true);
      }),
    );
  });
});
