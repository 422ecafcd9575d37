/** What the navigation shows. */
import {
  Boxes,
  Building2,
  ChartColumn,
  KeyRound,
  LayoutDashboard,
  ListChecks,
  Logs,
  type LucideIcon,
  Network,
  ScrollText,
  Send,
  Server,
  ShieldCheck,
  SquareTerminal,
  Tags,
  Ticket,
  Wallet,
  Webhook,
} from "lucide-react";
import type { Texts } from "./language.tsx";

/** One entry. */
export interface Destination {
  readonly to:
    | "/"
    | "/keys"
    | "/calls"
    | "/tasks"
    | "/usage"
    | "/billing"
    | "/webhooks"
    | "/models"
    | "/playground"
    | "/accounts"
    | "/all-calls"
    | "/all-deliveries"
    | "/vendors"
    | "/prices"
    | "/codes"
    | "/audit"
    | "/system";
  readonly icon: LucideIcon;
  readonly title: (texts: Texts) => string;
}

/** What customers see, and operators too. */
export const customerPages: readonly Destination[] = [
  { to: "/", icon: LayoutDashboard, title: ({ shell }) => shell.overview },
  { to: "/keys", icon: KeyRound, title: ({ shell }) => shell.keys },
  { to: "/calls", icon: ScrollText, title: ({ shell }) => shell.calls },
  { to: "/tasks", icon: ListChecks, title: ({ shell }) => shell.tasks },
  { to: "/usage", icon: ChartColumn, title: ({ shell }) => shell.usage },
  { to: "/billing", icon: Wallet, title: ({ shell }) => shell.billing },
  { to: "/webhooks", icon: Webhook, title: ({ shell }) => shell.webhooks },
  { to: "/models", icon: Boxes, title: ({ shell }) => shell.models },
  { to: "/playground", icon: SquareTerminal, title: ({ shell }) => shell.playground },
];

/** What operators see beside it. */
export const operatorPages: readonly Destination[] = [
  { to: "/accounts", icon: Building2, title: ({ shell }) => shell.accounts },
  { to: "/all-calls", icon: Logs, title: ({ shell }) => shell.allCalls },
  { to: "/all-deliveries", icon: Send, title: ({ shell }) => shell.allDeliveries },
  { to: "/vendors", icon: Network, title: ({ shell }) => shell.vendors },
  { to: "/prices", icon: Tags, title: ({ shell }) => shell.prices },
  { to: "/codes", icon: Ticket, title: ({ shell }) => shell.codes },
  { to: "/audit", icon: ShieldCheck, title: ({ shell }) => shell.audit },
  { to: "/system", icon: Server, title: ({ shell }) => shell.system },
];
