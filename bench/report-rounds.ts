/** Prints what was measured in rounds: ratios to the bare proxy of the same rounds first. */
import type { ContestantName, Measurement } from "./measure.ts";
import { print } from "./report.ts";
import type { Rounds } from "./rounds.ts";
import type { Limits } from "./scenario.ts";
import { medianOf, type Ratio } from "./statistics.ts";

/** Prints one scenario. */
export function printRounds(rounds: Rounds): void {
  const { title, unit, limits } = rounds.scenario;
  print(title);
  for (const name of rounds.names()) {
    if (name === "bare proxy") continue;
    const ratio = rounds.cpuRatio(name, "bare proxy");
    const database = rounds.databaseRatio(name).median;
    const beside = Number.isNaN(database) ? "" : `; its PostgreSQL ${database.toFixed(2)}×`;
    print(`  ${name}: ${rangeText(ratio)} the bare proxy's CPU${beside}`);
    if (name === "gateway") print(`  ${limitText(ratio.median, limits, "×")}`);
    else print(`  gateway: ${rangeText(rounds.cpuRatio("gateway", name))} the CPU of ${name}`);
  }
  const columns = [`${unit}s/s`, "p50 ms", "p99 ms", "CPU µs", "PostgreSQL µs", "switches"];
  print(`  ${row(["", ...columns])}`);
  for (const name of rounds.names()) print(`  ${row([name, ...figures(rounds, name)])}`);
  print();
}

/** A figure beside what is required and aimed at. */
export function limitText(value: number, { required, target }: Limits, unit: string): string {
  const verdict = value <= required ? "ok" : "MISSED";
  const aim = target === undefined ? "" : `, target ${target}${unit}`;
  return `required: at most ${required}${unit} ${verdict}${aim}`;
}

/** `2.31× (2.20–2.45, quietest turns 2.25×)`. */
export function rangeText({ median, least, most, quietest }: Ratio): string {
  const range = `${least.toFixed(2)}–${most.toFixed(2)}`;
  return `${median.toFixed(2)}× (${range}, quietest turns ${quietest.toFixed(2)}×)`;
}

function figures(rounds: Rounds, name: ContestantName): string[] {
  return figureTexts(medianOf(rounds.of(name)));
}

/** The columns of one measurement. */
function figureTexts(measurement: Measurement): string[] {
  const { perSecond, latency, cpuMicros, databaseMicros, switches } = measurement;
  return [
    Math.round(perSecond).toLocaleString("en"),
    latency.p50.toFixed(2),
    latency.p99.toFixed(2),
    micros(cpuMicros),
    Number.isNaN(databaseMicros) ? "" : micros(databaseMicros),
    switches.toFixed(switches < 0.1 ? 3 : 2),
  ];
}

function micros(value: number): string {
  return value.toFixed(value < 100 ? 1 : 0);
}

function row([name = "", ...columns]: readonly string[]): string {
  return name.padEnd(12) + columns.map((column) => column.padStart(14)).join("");
}
