/** Light and dark. */
import { useSyncExternalStore } from "react";
import { stored } from "./stored.ts";

/** What can be chosen; `system` follows the operating system. */
export type Theme = "system" | "light" | "dark";

const chosen = stored("theme", ["system", "light", "dark"]);

/** Puts the chosen theme on the page; called before anything is drawn, and whenever the system changes its mind. */
export function applyTheme(): void {
  const theme = readTheme();
  const isDark =
    theme === "dark" || (theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset["theme"] = isDark ? "dark" : "light";
}

function readTheme(): Theme {
  return chosen.read() ?? "system";
}

/** The chosen theme, and how to choose another one. */
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
