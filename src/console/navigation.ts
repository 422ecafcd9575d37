/** What the navigation shows. */
import { ChartColumn, KeyRound, LayoutDashboard, type LucideIcon, ScrollText } from "lucide-react";
import type { Texts } from "./language.tsx";

/** One entry. */
export interface Destination {
  readonly to: "/" | "/keys" | "/calls" | "/usage";
  readonly icon: LucideIcon;
  readonly title: (texts: Texts) => string;
}

/** What customers see, and operators too. */
export const customerPages: readonly Destination[] = [
  { to: "/", icon: LayoutDashboard, title: ({ shell }) => shell.overview },
  { to: "/keys", icon: KeyRound, title: ({ shell }) => shell.keys },
  { to: "/calls", icon: ScrollText, title: ({ shell }) => shell.calls },
  { to: "/usage", icon: ChartColumn, title: ({ shell }) => shell.usage },
];

/** What operators see beside it. */
export const operatorPages: readonly Destination[] = [];
