/**
 * Collects everything that is wrong with a configuration, so that all of it is reported at once.
 */
import type { LineCounter } from "yaml";

/** A configuration that cannot be used. `message` is all problems, one a line. */
export class ConfigError extends Error {
  /** Each problem with its remedy, in the order of the file; never the text of a secret. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.name = "ConfigError";
    this.problems = problems;
  }
}

interface Problem {
  readonly offset: number;
  readonly path: string;
  readonly message: string;
}

/** The errors and warnings of one file. Places are offsets in characters. */
export class Problems {
  readonly #source: string;
  readonly #lines: LineCounter;
  readonly #errors: Problem[] = [];
  readonly #warnings: Problem[] = [];
  readonly #included: Problems[] = [];

  /** @param source the file's name in messages */
  constructor(source: string, lines: LineCounter) {
    this.#source = source;
    this.#lines = lines;
  }

  /** Reports the problems of an included file with its own. */
  include(other: Problems): void {
    this.#included.push(other);
  }

  /** Adds an error. The path is empty if the problem belongs to no particular value. */
  error(offset: number, path: string, message: string): void {
    this.#errors.push({ offset, path, message });
  }

  /** Adds a warning: accepted, but without effect in this version. */
  warn(offset: number, path: string, message: string): void {
    this.#warnings.push({ offset, path, message });
  }

  /** The file and line of an offset: `uas.yaml:7`. */
  placeOf(offset: number): string {
    return `${this.#source}:${Math.max(this.#lines.linePos(offset).line, 1)}`;
  }

  /** The warnings as `file:line:col path: message`, in the order of the file. */
  warnings(): string[] {
    const included = this.#included.flatMap((other) => other.warnings());
    return [...this.#written(this.#warnings), ...included];
  }

  #allErrors(): string[] {
    const included = this.#included.flatMap((other) => other.#allErrors());
    return [...this.#written(this.#errors), ...included];
  }

  /** @throws ConfigError with all errors, in the order of the file, if there is any */
  failIfAny(): void {
    const errors = this.#allErrors();
    if (errors.length > 0) throw new ConfigError(errors);
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
