/** Checks many conversations of vendors with quirks. */
import * as fc from "fast-check";
import { fault, nameOf, type Sample, samples } from "./property.ts";

/** Number and kind of the checked conversations. */
export interface QuirkRun {
  readonly conversations: number;
  readonly seed: number;
  /** Only quirks with this text in their names. Default: all */
  readonly only?: string;
  /** Called from time to time. Default: never */
  readonly onProgress?: (done: number) => void;
}

/** Number of conversations that show a quirk. */
export interface Shown {
  alone: number;
  paired: number;
}

/** Result of a run. */
export interface QuirkReport {
  /**
   * Findings, each with the smallest conversation that shows it, once for each pair of styles and
   * quirks.
   */
  readonly findings: readonly string[];
  /** By style and name. */
  readonly shown: ReadonlyMap<string, Shown>;
}

/** Number of conversations per draw. */
const batch = 2_000;

/** Checks conversations. The same seed draws the same ones. */
export function checkQuirks({ conversations, seed, only, onProgress }: QuirkRun): QuirkReport {
  const shown = new Map<string, Shown>();
  const findings = new Map<string, string>();
  for (let done = 0; done < conversations; done += batch) {
    const numRuns = Math.min(batch, conversations - done);
    for (const sample of fc.sample(samples(only), { numRuns, seed: seed + done })) {
      count(sample, shown);
      const what = fault(sample);
      if (what === undefined) continue;
      const text = `${nameOf(sample)}\n${JSON.stringify(sample.conversation)}\n${what}`;
      const key = keyOf(sample);
      const known = findings.get(key);
      if (known === undefined || text.length < known.length) findings.set(key, text);
    }
    onProgress?.(done + numRuns);
  }
  return { findings: [...findings.values()], shown };
}

function keyOf({ way: { vendor, caller, form }, shown }: Sample): string {
  return [vendor, caller, form, ...shown.map(({ name }) => name)].join("; ");
}

function count({ way, shown: quirks }: Sample, shown: Map<string, Shown>): void {
  for (const { name } of quirks) {
    const key = `${way.vendor}: ${name}`;
    const counts = shown.get(key) ?? { alone: 0, paired: 0 };
    if (quirks.length === 1) counts.alone++;
    else counts.paired++;
    shown.set(key, counts);
  }
}
