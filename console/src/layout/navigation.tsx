/** The navigation: the list of pages, drawn at the side and, on narrow windows, behind a button. */
import { Dialog } from "@base-ui/react/dialog";
import { Link } from "@tanstack/react-router";
import {
  BookOpen,
  Boxes,
  Building2,
  ChartCandlestick,
  ChartColumn,
  KeyRound,
  LayoutDashboard,
  ListChecks,
  Logs,
  type LucideIcon,
  Menu,
  Network,
  ScrollText,
  Send,
  Server,
  ShieldCheck,
  SlidersHorizontal,
  SquareTerminal,
  Tags,
  Ticket,
  Wallet,
  Webhook,
  X,
} from "lucide-react";
import { useState } from "react";
import { type Texts, useText } from "../common/language.tsx";
import { useSession } from "../common/session.tsx";
import { buttonClass } from "../ui/button.tsx";

/** One entry of the navigation. */
interface Destination {
  readonly to:
    | "/"
    | "/keys"
    | "/calls"
    | "/tasks"
    | "/usage"
    | "/billing"
    | "/webhooks"
    | "/models"
    | "/reference"
    | "/playground"
    | "/accounts"
    | "/all-calls"
    | "/all-deliveries"
    | "/vendors"
    | "/prices"
    | "/configuration"
    | "/finance"
    | "/codes"
    | "/audit"
    | "/system";
  readonly icon: LucideIcon;
  readonly title: (texts: Texts) => string;
}

/** The pages of customers, and of operators too. */
const customerPages: readonly Destination[] = [
  { to: "/", icon: LayoutDashboard, title: ({ layout }) => layout.overview },
  { to: "/keys", icon: KeyRound, title: ({ layout }) => layout.keys },
  { to: "/calls", icon: ScrollText, title: ({ layout }) => layout.calls },
  { to: "/tasks", icon: ListChecks, title: ({ layout }) => layout.tasks },
  { to: "/usage", icon: ChartColumn, title: ({ layout }) => layout.usage },
  { to: "/billing", icon: Wallet, title: ({ layout }) => layout.billing },
  { to: "/webhooks", icon: Webhook, title: ({ layout }) => layout.webhooks },
  { to: "/models", icon: Boxes, title: ({ layout }) => layout.models },
  { to: "/reference", icon: BookOpen, title: ({ layout }) => layout.reference },
  { to: "/playground", icon: SquareTerminal, title: ({ layout }) => layout.playground },
];

/** The additional pages of operators. */
const operatorPages: readonly Destination[] = [
  { to: "/accounts", icon: Building2, title: ({ layout }) => layout.accounts },
  { to: "/all-calls", icon: Logs, title: ({ layout }) => layout.allCalls },
  { to: "/all-deliveries", icon: Send, title: ({ layout }) => layout.allDeliveries },
  { to: "/vendors", icon: Network, title: ({ layout }) => layout.vendors },
  { to: "/prices", icon: Tags, title: ({ layout }) => layout.prices },
  { to: "/configuration", icon: SlidersHorizontal, title: ({ layout }) => layout.configuration },
  { to: "/finance", icon: ChartCandlestick, title: ({ layout }) => layout.finance },
  { to: "/codes", icon: Ticket, title: ({ layout }) => layout.codes },
  { to: "/audit", icon: ShieldCheck, title: ({ layout }) => layout.audit },
  { to: "/system", icon: Server, title: ({ layout }) => layout.system },
];

export function Brand() {
  return (
    <Link to="/" className="flex items-center gap-2.5 rounded-lg font-semibold tracking-tight">
      <svg aria-hidden="true" viewBox="0 0 32 32" className="size-6">
        <rect width="32" height="32" rx="8" className="fill-solid" />
        <path
          d="M8 11h9a5 5 0 0 1 0 10H8"
          fill="none"
          strokeWidth="3"
          strokeLinecap="round"
          className="stroke-on-solid"
        />
        <circle cx="24" cy="16" r="2.5" className="fill-[#818cf8]" />
      </svg>
      UAS Gateway
    </Link>
  );
}

export function Navigation({ onChosen }: { onChosen?: () => void }) {
  const { layout } = useText();
  const { isOperator } = useSession();
  return (
    <nav aria-label={layout.navigation} className="flex flex-1 flex-col gap-6 px-3 py-3">
      <Destinations pages={customerPages} {...(onChosen && { onChosen })} />
      {isOperator && (
        <div>
          <h2 className="px-2.5 pb-1.5 text-xs font-medium text-muted">{layout.operator}</h2>
          <Destinations pages={operatorPages} {...(onChosen && { onChosen })} />
        </div>
      )}
    </nav>
  );
}

function Destinations({
  pages,
  onChosen,
}: {
  pages: readonly Destination[];
  onChosen?: () => void;
}) {
  const texts = useText();
  return (
    <ul className="flex flex-col gap-0.5">
      {pages.map(({ to, icon: Icon, title }) => (
        <li key={to}>
          <Link
            to={to}
            activeOptions={{ exact: to === "/", includeSearch: false }}
            {...(onChosen && { onClick: onChosen })}
            className="flex items-center gap-2.5 rounded-lg px-2.5 py-1.5 font-medium text-muted transition-colors hover:bg-hover hover:text-ink aria-[current=page]:bg-sunken aria-[current=page]:text-ink"
          >
            <Icon aria-hidden="true" className="size-4 shrink-0" />
            {title(texts)}
          </Link>
        </li>
      ))}
    </ul>
  );
}

export function SmallNavigation() {
  const { layout, common } = useText();
  const [isOpen, setOpen] = useState(false);
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Trigger aria-label={layout.navigation} className={buttonClass("quiet", "icon")}>
        <Menu aria-hidden="true" />
      </Dialog.Trigger>
      <Dialog.Portal>
        <Dialog.Backdrop className="fade fixed inset-0 z-40 bg-black/40" />
        <Dialog.Popup className="fade fixed inset-y-0 left-0 z-50 flex w-72 flex-col overflow-y-auto bg-canvas shadow-float outline-none">
          <div className="flex h-14 items-center justify-between pr-3 pl-5">
            <Dialog.Title render={<span />}>
              <Brand />
            </Dialog.Title>
            <Dialog.Close aria-label={common.close} className={buttonClass("quiet", "icon")}>
              <X aria-hidden="true" />
            </Dialog.Close>
          </div>
          <Navigation onChosen={() => setOpen(false)} />
        </Dialog.Popup>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
