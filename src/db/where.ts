/** Conditions of a statement, and their values. */
export class Where {
  /** The parameters of the statement, `$1` first. */
  readonly values: unknown[] = [];
  readonly #terms: string[] = [];

  /** Adds a parameter. Returns its name in the statement. */
  value(value: unknown): string {
    this.values.push(value);
    return `$${this.values.length}`;
  }

  /**
   * Adds a condition. `?` represents the value; if the value is undefined, no condition is added.
   */
  and(term: string, value: unknown): this {
    if (value !== undefined) this.#terms.push(term.replace("?", this.value(value)));
    return this;
  }

  /** Adds a condition without a value. */
  also(term: string): this {
    this.#terms.push(term);
    return this;
  }

  /** All conditions; `true` if there are none. */
  get text(): string {
    return this.#terms.join(" and ") || "true";
  }
}
