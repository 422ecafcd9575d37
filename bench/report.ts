/** Prints what was measured: ratios to the bare proxy of the same rounds first. */
import type { ContestantName } from "./measure.ts";
import type { Rounds } from "./rounds.ts";
import { scenarios } from "./scenario.ts";
import type { Ratio } from "./statistics.ts";

/** Prints a line to standard output. */
export function print(line = ""): void {
  process.stdout.write(`${line}\n`);
}

/** A row of a table: a name, then columns of one width. */
export function row([name = "", ...columns]: readonly string[], width: number): string {
  return name.padEnd(12) + columns.map((column) => column.padStart(width)).join("");
}

/** Prints one scenario. */
export function printRounds(rounds: Rounds): void {
  const { title, unit, required } = rounds.scenario;
  print(title);
  for (const name of rounds.names()) {
    if (name === "bare proxy") continue;
    const ratio = rounds.ratio(name, "cpuMicros", "bare proxy");
    const database = rounds.ratio(name, "databaseMicros", "bare proxy").median;
    const beside = Number.isNaN(database) ? "" : `; its PostgreSQL ${database.toFixed(2)}×`;
    print(`  ${name}: ${rangeText(ratio)} the bare proxy's CPU${beside}`);
    if (name === "gateway") {
      print(`  required: at most ${required}× ${ratio.median <= required ? "ok" : "MISSED"}`);
    } else {
      const compared = rounds.ratio("gateway", "cpuMicros", name);
      print(`  gateway: ${rangeText(compared)} the CPU of ${name}`);
    }
  }
  const columns = [`${unit}s/s`, "p50 ms", "p99 ms", "CPU µs", "PostgreSQL µs", "switches"];
  print(`  ${row(["", ...columns], 14)}`);
  for (const name of rounds.names()) print(`  ${row([name, ...figures(rounds, name)], 14)}`);
  print();
}

/** `2.31× (2.20–2.45, quietest turns 2.25×)`. */
function rangeText({ median, least, most, quietest }: Ratio): string {
  const range = `${least.toFixed(2)}–${most.toFixed(2)}`;
  return `${median.toFixed(2)}× (${range}, quietest turns ${quietest.toFixed(2)}×)`;
}

function figures(rounds: Rounds, name: ContestantName): string[] {
  const micros = (value: number): string => value.toFixed(value < 100 ? 1 : 0);
  const database = rounds.median(name, "databaseMicros");
  const switches = rounds.median(name, "switches");
  return [
    Math.round(rounds.median(name, "perSecond")).toLocaleString("en"),
    rounds.median(name, "p50Ms").toFixed(2),
    rounds.median(name, "p99Ms").toFixed(2),
    micros(rounds.median(name, "cpuMicros")),
    Number.isNaN(database) ? "" : micros(database),
    switches.toFixed(switches < 0.1 ? 3 : 2),
  ];
}

interface SummaryRow {
  readonly title: string;
  readonly required: number;
  readonly unit: string;
}

const summaryRows: ReadonlyMap<string, SummaryRow> = new Map([
  ...scenarios.map(({ name, title, required }) => [name, { title, required, unit: "×" }] as const),
  ["database", { title: "PostgreSQL's CPU per JSON request", required: 0.7, unit: "×" }],
  [
    "open",
    {
      title: "p99 at 512 connections, open loop at 60 % of capacity (as multiple of p50)",
      required: 20,
      unit: "×",
    },
  ],
  ["limits", { title: "time that rate limits add at p50", required: 1, unit: " ms" }],
]);

/** Prints the table at the end: a row for each limit. Those that were not measured have a dash. */
export function printSummary(measured: ReadonlyMap<string, number>): void {
  const line = ([title = "", ...cells]: readonly string[]): string =>
    `${title.padEnd(76)}${cells.map((cell) => cell.padStart(12)).join("")}`;
  print(line(["", "measured", "required"]));
  for (const [name, { title, required, unit }] of summaryRows) {
    const value = measured.get(name) ?? Number.NaN;
    const figure = Number.isNaN(value) ? "-" : `${value.toFixed(2)}${unit}`;
    const verdict = value > required ? "  MISSED" : "";
    print(line([title, figure, `${required}${unit}`]) + verdict);
  }
}
