/** The table at the end: one row for each limit, measured or not. */
import { print } from "./report.ts";
import { type Limits, scenarioOf } from "./scenario.ts";

/** What can be entered into the table. */
export type RowName = keyof typeof rows;

interface Row {
  readonly title: string;
  readonly limits: Limits;
  /** Behind each figure. */
  readonly unit: string;
  /** Whether more is better. Default: less. */
  readonly isMoreBetter?: boolean;
}

const rows = {
  json: { title: "JSON request", limits: scenarioOf("json").limits, unit: "×" },
  database: {
    title: "PostgreSQL's CPU per JSON request",
    limits: { required: 0.8, target: 0.5 },
    unit: "×",
  },
  flood200: {
    title: "SSE flood, 200 chunks",
    limits: scenarioOf("flood200").limits,
    unit: "×",
  },
  flood: { title: "SSE flood, 2,000 chunks", limits: scenarioOf("flood").limits, unit: "×" },
  native: {
    title: "same through a native prefix",
    limits: scenarioOf("native").limits,
    unit: "×",
  },
  paced: { title: "paced SSE", limits: scenarioOf("paced").limits, unit: "×" },
  large: { title: "1 MB request body", limits: scenarioOf("large").limits, unit: "×" },
  upload: { title: "multipart upload of 25 MB", limits: scenarioOf("upload").limits, unit: "×" },
  body: {
    title: "1 MB body translated between styles",
    limits: { required: 3, target: 2 },
    unit: "×",
  },
  switches: { title: "context switches per request", limits: { required: 0.2 }, unit: "" },
  open: {
    title: "p99 at 512 connections, open loop at 60 % of capacity (as multiple of p50)",
    limits: { required: 20 },
    unit: "×",
  },
  workers: {
    title: "throughput with two workers",
    limits: { required: 1.8 },
    unit: "×",
    isMoreBetter: true,
  },
  ledger: {
    title: "ledger: added p99 with 256 in flight and a slow disk",
    limits: { required: 25 },
    unit: " ms",
  },
} as const satisfies Readonly<Record<string, Row>>;

/** The figures of one run. */
export class Summary {
  readonly #measured = new Map<string, number>();

  /** Enters a figure; NaN: it could not be measured. */
  set(row: RowName, value: number): void {
    if (!Number.isNaN(value)) this.#measured.set(row, value);
  }

  /** Prints all rows; those that were not measured have a dash. */
  print(): void {
    const line = ([title = "", ...cells]: readonly string[]): string =>
      `${title.padEnd(76)}${cells.map((cell) => cell.padStart(12)).join("")}`;
    print(line(["", "measured", "required", "target"]));
    for (const [name, row] of Object.entries<Row>(rows)) {
      const { title, limits, unit, isMoreBetter = false } = row;
      const value = this.#measured.get(name);
      const isMet =
        value !== undefined && (isMoreBetter ? value >= limits.required : value <= limits.required);
      const verdict = value === undefined || isMet ? "" : "  MISSED";
      const target = limits.target === undefined ? "-" : `${limits.target}${unit}`;
      const measured = value === undefined ? "-" : `${value.toFixed(2)}${unit}`;
      print(line([title, measured, `${limits.required}${unit}`, target]) + verdict);
    }
  }
}
