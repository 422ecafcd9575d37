/**
 * Names environment variables for credentials. Credentials of the imported file are compared only:
 * neither the output nor the report repeats one.
 */

/** Variables that hold secrets of the gateway itself, so no vendor's key. */
const reserved: ReadonlySet<string> = new Set([
  "UAS_MASTER_KEY",
  "UAS_OPERATOR_TOKEN",
  "DATABASE_URL",
  "PGPASSWORD",
]);

/** The variables of one import. */
export class Variables {
  readonly #places = new Map<string, string>();
  readonly #byLiteral = new Map<string, string>();
  readonly #byReference = new Map<string, string>();

  /** Each variable with the place of its credential. */
  get places(): ReadonlyMap<string, string> {
    return this.#places;
  }

  /** The variable of a reference such as `os.environ/NAME`. */
  ofReference(name: string, place: string): string {
    const known = this.#byReference.get(name);
    if (known !== undefined) return known;
    const isPlain = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !reserved.has(name);
    const variable = isPlain ? name : this.#unused(`VENDOR_${variableWord(name)}`);
    this.#byReference.set(name, variable);
    if (!this.#places.has(variable)) this.#places.set(variable, place);
    return variable;
  }

  /**
   * The variable of a credential that is in the file.
   *
   * @param wish the name to use if it is free, such as `OPENAI_API_KEY`
   */
  ofLiteral(secret: string, wish: string, place: string): string {
    const known = this.#byLiteral.get(secret);
    if (known !== undefined) return known;
    const variable = this.add(wish, place);
    this.#byLiteral.set(secret, variable);
    return variable;
  }

  /** A new variable. */
  add(wish: string, place: string): string {
    const variable = this.#unused(variableWord(wish));
    this.#places.set(variable, place);
    return variable;
  }

  #unused(wish: string): string {
    const isFree = (name: string): boolean => !this.#places.has(name) && !reserved.has(name);
    if (isFree(wish)) return wish;
    let count = 2;
    while (!isFree(`${wish}_${count}`)) count++;
    return `${wish}_${count}`;
  }
}

function variableWord(text: string): string {
  const word = text
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, "_")
    .replace(/^_+|_+$/g, "")
    .slice(0, 60);
  return /^[A-Z]/.test(word) ? word : `VENDOR_${word}`;
}
