/** Prints the results of the rounds. */
import type { Ran } from "./runs.ts";

/** The sums of some rounds. */
export interface Sums {
  readonly rounds: number;
  /** Rounds in which the fault came if it was planned. */
  readonly hit: number;
  readonly calls: number;
  readonly settled: number;
  readonly lost: number;
  readonly doubled: number;
  readonly drift: number;
  readonly stuck: number;
  /** Rounds that could not be run to their end. */
  readonly failed: number;
  /** Faults that came in none of their rounds if they were planned: nothing was proven of them. */
  readonly missed: readonly string[];
  /** The longest that anything was left open: with a tenth of the timings, and with all. */
  readonly cleanMsMax: number;
  readonly fullCleanMsMax: number;
}

/** Adds rounds up. */
export function sumUp(rounds: readonly Ran[]): Sums {
  const results = rounds.flatMap(({ result }) => (result instanceof Error ? [] : [result]));
  const sum = (read: (result: (typeof results)[number]) => number): number =>
    results.reduce((total, result) => total + read(result), 0);
  const longest = (full: boolean): number =>
    rounds.reduce((most, { isFull, result }) => {
      const isCounted = isFull === full && !(result instanceof Error);
      return isCounted ? Math.max(most, result.cleanMs) : most;
    }, 0);
  return {
    rounds: rounds.length,
    hit: sum(({ isHit }) => Number(isHit)),
    calls: sum(({ calls }) => calls),
    settled: sum(({ settled }) => settled),
    lost: sum(({ findings }) => findings.lost),
    doubled: sum(({ findings }) => findings.doubled),
    drift: sum(({ findings }) => findings.drift),
    stuck: sum(({ findings }) => findings.stuck),
    failed: rounds.length - results.length,
    missed: missedOf(rounds),
    cleanMsMax: longest(false),
    fullCleanMsMax: longest(true),
  };
}

/** Whether nothing is wrong. */
export function isGood({ lost, doubled, drift, stuck, failed, missed }: Sums): boolean {
  return lost + doubled + drift + stuck + failed + missed.length === 0;
}

function missedOf(rounds: readonly Ran[]): string[] {
  const isHit = ({ result }: Ran): boolean => !(result instanceof Error) && result.isHit;
  const groups = Map.groupBy(rounds, ({ mode, fault }) => `${mode}: ${fault.name}`);
  return [...groups].filter(([, group]) => !group.some(isHit)).map(([name]) => name);
}

const columns = ["rounds", "hit", "calls", "settled", "lost", "doubled", "drift", "stuck"] as const;

/** Returns one line for each kind of fault, and a total. */
export function tableOf(rounds: readonly Ran[]): string {
  const groups = Map.groupBy(rounds, ({ mode, fault }) => `${mode}: ${fault.name}`);
  const lines = [
    ["fault", ...columns, "clean after s", "full timings"],
    ...[...groups].map(([name, group]) => lineOf(name, sumUp(group))),
    lineOf("all", sumUp(rounds)),
  ];
  const widths = (lines[0] ?? []).map((_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? "").length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, column) =>
          column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0),
        )
        .join("  "),
    )
    .join("\n");
}

function lineOf(name: string, sums: Sums): string[] {
  const cells = columns.map((column) => String(sums[column]));
  const times = [sums.cleanMsMax, sums.fullCleanMsMax].map((ms) => (ms / 1_000).toFixed(1));
  return [name, ...cells, ...times];
}

/** Returns the problems in words, with the seeds that reproduce them. */
export function problemsOf(rounds: readonly Ran[]): string[] {
  return rounds.flatMap(({ mode, fault, seed, isFull, result }) => {
    const what = result instanceof Error ? [result.stack ?? ""] : result.findings.details;
    const where = `${mode}: ${fault.name}, seed ${seed}${isFull ? ", full timings" : ""}`;
    return what.map((detail) => `${where}: ${detail}`);
  });
}
