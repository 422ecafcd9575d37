/**
 * Sloppy vendors behind a running gateway: a call with a quirk is read and charged as the same
 * call without it, or it is an error and free.
 */
import { inspect, isDeepStrictEqual } from "node:util";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallEnding } from "../../../gen/uas/billing/v1/call_pb.ts";
import { type Reading, readStream, readWhole } from "./caller-reading.ts";
import { isEvents, isRelayed, isStreamed } from "./gateway-reading.ts";
import { bodyOf, meaningOf, nameOf, type Sample, samples } from "./property.ts";
import { useSloppyGateway } from "./sloppy-gateway.ts";

const gateway = useSloppyGateway();

/** The result of a call. */
interface Result {
  readonly status: number;
  /** Undefined if the caller speaks the vendor's style: it gets the vendor's form. */
  readonly read: unknown;
  readonly ending: CallEnding;
  readonly usage: unknown;
  readonly nanos: bigint;
}

/** Calls a model of the sample's vendor, which answers in the sample's way. */
async function resultOf(sample: Sample): Promise<Result> {
  const { way } = sample;
  const stream = isStreamed(way);
  const answer = { body: bodyOf(sample), isStream: isEvents(way) };
  const { text, ...result } = await gateway.ask({ ...way, stream }, answer);
  const read =
    isRelayed(way) || result.status !== 200 ? undefined : stream ? readStream : readWhole;
  return { ...result, read: read && contentsOf(read(way.caller, text)) };
}

/** Ids of calls may differ, as vendors leave them out. */
function contentsOf({ calls, ...read }: Reading): unknown {
  return { ...read, calls: calls.map(meaningOf) };
}

/** Returns the difference, or a charge for an error. */
function faultOf(sample: Sample, got: Result, plain: Result): string | undefined {
  const { status, ending, nanos } = got;
  if (status !== 200 || ending !== CallEnding.COMPLETED) {
    return nanos === 0n ? undefined : `${nameOf(sample)}: an error is charged ${nanos}`;
  }
  return isDeepStrictEqual(got, plain)
    ? undefined
    : `${nameOf(sample)}: ${inspect([got, plain], { depth: 9 })}`;
}

/** Runs one after the other, in some lanes at once. */
async function each<T>(all: readonly T[], run: (one: T) => Promise<void>): Promise<void> {
  const rest = [...all];
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (let one = rest.shift(); one !== undefined; one = rest.shift()) await run(one);
    }),
  );
}

describe("through a running gateway", () => {
  it("500 calls of vendors with quirks read, and cost, as without them", async () => {
    const faults: string[] = [];
    let errors = 0;
    await each(fc.sample(samples(), { numRuns: 500, seed: 20_261_129 }), async (sample) => {
      const plain = await resultOf({ ...sample, shown: [] });
      expect([plain.status, plain.ending]).toEqual([200, CallEnding.COMPLETED]);
      expect(plain.nanos).toBeGreaterThan(0n);
      const got = await resultOf(sample);
      if (got.ending !== CallEnding.COMPLETED) errors++;
      const fault = faultOf(sample, got, plain);
      if (fault !== undefined) faults.push(fault);
    });
    expect(faults).toEqual([]);
    // Errors are allowed, and rare: these quirks leave nothing open.
    expect(errors).toBe(0);
  });

  it("native calls of Gemini with quirks cost as without them", async () => {
    const faults: string[] = [];
    const gemini = fc
      .sample(samples(), { numRuns: 800, seed: 20_261_130 })
      .filter(({ way }) => way.vendor === "gemini" && ["stream", "whole"].includes(way.form));
    await each(gemini.slice(0, 120), async (sample) => {
      const isStream = sample.way.form === "stream";
      const method = isStream ? "streamGenerateContent?alt=sse" : "generateContent";
      const path = `/gemini/v1beta/models/m-gemini:${method}`;
      const ask = (body: string) =>
        gateway.call(path, { contents: [{ parts: [{ text: "prompt" }] }] }, { body, isStream });
      const plain = await ask(bodyOf({ ...sample, shown: [] }));
      const got = await ask(bodyOf(sample));
      const [paid, due] = [got, plain].map(({ status, ending, usage, nanos }) => ({
        ...{ status, ending, usage, nanos },
      }));
      expect(due).toMatchObject({ status: 200, ending: CallEnding.COMPLETED });
      if (isDeepStrictEqual(paid, due)) return;
      faults.push(`${nameOf(sample)}: ${inspect([paid, due], { depth: 9 })}`);
    });
    expect(faults).toEqual([]);
  });

  it("background responses of vendors with quirks are stored as without them", async () => {
    const faults: string[] = [];
    const background = fc
      .sample(samples(), { numRuns: 1_200, seed: 20_261_131 })
      .filter(({ way }) => way.caller === "responses" && way.form === "stream");
    expect(background.length).toBeGreaterThan(60);
    await each(background.slice(0, 80), async (sample) => {
      const stored = async (shown: Sample["shown"]) => {
        const answer = { body: bodyOf({ ...sample, shown }), isStream: true };
        const text = await gateway.background(sample.way.vendor, answer);
        const read = readWhole("responses", text);
        // In the caller's style, usage and reasoning are in the vendor's form.
        const relayed = { ...read, usage: undefined, reasoning: "" };
        return contentsOf(isRelayed(sample.way) ? relayed : read);
      };
      const [got, plain] = [await stored(sample.shown), await stored([])];
      if (isDeepStrictEqual(got, plain)) return;
      faults.push(`${nameOf(sample)}: ${inspect([got, plain], { depth: 9 })}`);
    });
    expect(faults).toEqual([]);
  });
});
