/** Preferences that the browser stores: choices of the console's appearance. Never a secret. */
import { useSyncExternalStore } from "react";

/** One stored choice of the user. */
export interface Stored<Value extends string> {
  read(): Value | undefined;
  write(value: Value): void;
}

/**
 * A choice among `values` that is kept in the browser's storage; without storage, it lasts as long
 * as the page.
 */
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
        // Without storage, everything else still works.
      }
    },
  };
}

/** The themes to choose from; `system` follows the operating system. */
export type Theme = "system" | "light" | "dark";

const chosen = stored("theme", ["system", "light", "dark"]);

/**
 * Applies the chosen theme; called before the first rendering and when the system's theme changes.
 */
export function applyTheme(): void {
  const theme = readTheme();
  const isDark =
    theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}

function readTheme(): Theme {
  return chosen.read() ?? "system";
}

/** The chosen theme, and a function that changes it. */
export function useTheme(): readonly [Theme, (theme: Theme) => void] {
  const theme = useSyncExternalStore(subscribe, readTheme);
  return [theme, chooseTheme];
}

const changed = "uas-theme";

function chooseTheme(theme: Theme): void {
  chosen.write(theme);
  applyTheme();
  dispatchEvent(new Event(changed));
}

function subscribe(onChange: () => void): () => void {
  addEventListener(changed, onChange);
  return () => removeEventListener(changed, onChange);
}
