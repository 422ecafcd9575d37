/** Collects everything that is wrong with a configuration, so that all of it is reported at once. */
import { type LineCounter, isNode } from "yaml";

/** A configuration that cannot be used. `message` is all problems, one a line. */
export class ConfigError extends Error {
  /** What is wrong and how to mend it, in the order of the file; never the text of a secret. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

/** A place in the file: an offset in characters, or something of the syntax tree that has one. */
export type Place = number | object;

interface Problem {
  readonly offset: number;
  readonly path: string;
  readonly message: string;
}

/** The errors and warnings of one file. */
export class Problems {
  readonly #source: string;
  readonly #lines: LineCounter;
  readonly #errors: Problem[] = [];
  readonly #warnings: Problem[] = [];

  /** @param source how the file is called in messages */
  constructor(source: string, lines: LineCounter) {
    this.#source = source;
    this.#lines = lines;
  }

  /** Whether there is any error so far. */
  get hasErrors(): boolean {
    return this.#errors.length > 0;
  }

  /** Adds an error. The path is empty where the problem is no particular value's. */
  error(place: Place, path: string, message: string): void {
    this.#errors.push({ offset: offsetOf(place), path, message });
  }

  /** Adds a warning: accepted, but without effect in this version. */
  warn(place: Place, path: string, message: string): void {
    this.#warnings.push({ offset: offsetOf(place), path, message });
  }

  /** The line of a place, from 1. */
  lineOf(place: Place): number {
    return Math.max(this.#lines.linePos(offsetOf(place)).line, 1);
  }

  /** The warnings, in the order of the file. */
  warnings(): string[] {
    return this.#written(this.#warnings);
  }

  /** @throws ConfigError with all errors, in the order of the file, where there is any */
  failIfAny(): void {
    if (this.hasErrors) throw new ConfigError(this.#written(this.#errors));
  }

  #written(problems: readonly Problem[]): string[] {
    const sorted = problems.toSorted((a, b) => a.offset - b.offset);
    return [...new Set(sorted.map((problem) => this.#line(problem)))];
  }

  #line({ offset, path, message }: Problem): string {
    // An empty file has no line at all.
    const { line, col } = this.#lines.linePos(offset);
    const where = `${this.#source}:${Math.max(line, 1)}:${Math.max(col, 1)}`;
    return path === "" ? `${where} ${message}` : `${where} ${path}: ${message}`;
  }
}

function offsetOf(place: Place): number {
  if (typeof place === "number") return place;
  return (isNode(place) ? place.range?.[0] : undefined) ?? 0;
}
