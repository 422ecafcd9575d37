/**
 * Replies of sloppy vendors through the dialects: a caller reads the same as without their quirks,
 * and pays the same. For another seed, or more conversations, `npm run fuzz -- --quirks`.
 */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { accumulatedOf } from "../../support/sdk-streams.ts";
import { callerStyles, readStream } from "./caller-reading.ts";
import { isRelayed, isStreamed, pass, ways } from "./gateway-reading.ts";
import { bodyOf, samples } from "./property.ts";
import { quirks } from "./quirks/index.ts";
import { checkQuirks } from "./run.ts";
import { vendorStyles } from "./vendor-reply.ts";

describe("the tables of quirks", () => {
  it.each(vendorStyles)(
    "name each quirk of %s once, with its vendors and a public source",
    (style) => {
      const names = quirks[style].map(({ name }) => name);
      expect(names).toEqual([...new Set(names)]);
      for (const { name, vendors, source, ...row } of quirks[style]) {
        expect([name, vendors.length > 0]).toEqual([name, true]);
        expect(source).toMatch(/^(?:https:\/\/\S+|[\w.-]+\/[\w.-]+#\d+)$/);
        const { stream, whole, streamText, wholeText } = row;
        expect([name, stream ?? whole ?? streamText ?? wholeText]).not.toEqual([name, undefined]);
      }
    },
  );
});

describe("20,000 conversations of vendors with one or two quirks", () => {
  const each = 4_000;
  const shown = new Set<string>();

  it.each([0, 1, 2, 3, 4])("read, and cost, as without them (part %i of 0 to 4)", (part) => {
    const report = checkQuirks({ conversations: each, seed: 20_261_128 + part * each });
    for (const name of report.shown.keys()) shown.add(name);
    expect(report.findings).toEqual([]);
  });

  it("show every quirk in every style that has it", () => {
    const names = vendorStyles.flatMap((style) =>
      quirks[style].map(({ name }) => `${style}: ${name}`),
    );
    expect(names.filter((name) => !shown.has(name))).toEqual([]);
  });
});

it("the official SDKs read streams of sloppy vendors as these tests do", async () => {
  const streams = fc
    .sample(samples(), { numRuns: 600, seed: 7 })
    .filter(({ way }) => isStreamed(way) && !isRelayed(way));
  expect(new Set(streams.map(({ way }) => way.caller)).size).toBe(callerStyles.length);
  for (const sample of streams) {
    const { body } = pass(sample.way, bodyOf(sample), sample.pieceBytes);
    const { caller } = sample.way;
    const [read, sdk] = [readStream(caller, body), await accumulatedOf(caller, body)];
    const { text, reasoning, calls, stop } = read;
    expect(sdk.text).toBe(text);
    // The helper of responses counts functions, and summaries of reasoning, only.
    if (caller !== "responses") {
      const inputs = calls.map(({ input }) => input);
      expect([sdk.reasoning, sdk.inputs, sdk.stop]).toEqual([reasoning, inputs, stop]);
    }
    expect(calls.length).toBe(sample.conversation.calls.length);
  }
});

it("every way between the styles is among them", () => {
  const names = ways.map(({ vendor, caller, form }) => `${vendor} ${caller} ${form}`);
  expect(new Set(names).size).toBe(4 * 3 * 4);
});
