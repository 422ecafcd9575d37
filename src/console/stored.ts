/** What the browser remembers between visits: choices of how the console looks. Never anything secret. */

/** One remembered choice. */
export interface Stored<Value extends string> {
  read(): Value | undefined;
  write(value: Value): void;
}

/** A remembered choice among `values`. Where the browser keeps nothing, it is forgotten with the page. */
export function stored<const Value extends string>(
  name: string,
  values: readonly Value[],
): Stored<Value> {
  const key = `uas.${name}`;
  return {
    read() {
      try {
        return values.find((value) => value === localStorage.getItem(key));
      } catch {
        return undefined;
      }
    },
    write(value) {
      try {
        localStorage.setItem(key, value);
      } catch {
        // A browser that keeps nothing still shows everything.
      }
    },
  };
}
