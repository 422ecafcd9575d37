/** The layout of every page of a signed-in user: navigation at the left, balance and menus above. */
import { Dialog } from "@base-ui/react/dialog";
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import {
  BookOpen,
  Boxes,
  Building2,
  ChartCandlestick,
  ChartColumn,
  CircleUser,
  KeyRound,
  Languages,
  LayoutDashboard,
  ListChecks,
  LogOut,
  Logs,
  type LucideIcon,
  Menu,
  Network,
  ScrollText,
  Send,
  Server,
  Settings,
  ShieldCheck,
  SquareTerminal,
  SunMoon,
  Tags,
  Ticket,
  Wallet,
  Webhook,
  X,
} from "lucide-react";
import { useState } from "react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { BalanceChip, LowBalanceNote } from "../billing/balance.tsx";
import { languages, type Texts, useLanguage, useText } from "../common/language.tsx";
import { useTheme } from "../common/preferences.ts";
import { isSignedOut } from "../common/rpc.ts";
import { useSession, useSessionQuery } from "../common/session.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Skeleton } from "../ui/card.tsx";
import { ChoiceMenu } from "../ui/menu.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** The layout, once it is known who is signed in. */
export function Layout() {
  const { data, error, refetch } = useSessionQuery();
  if (data !== undefined) return <SignedInLayout />;
  if (error === null || isSignedOut(error)) return <LayoutSkeleton />;
  return (
    <main className="mx-auto max-w-xl px-4 py-24">
      <ErrorNote error={error} onRetry={() => void refetch()} />
    </main>
  );
}

/** Reserves the space of the layout, so that nothing moves. */
function LayoutSkeleton() {
  return (
    <div className="flex min-h-dvh" aria-busy="true">
      <div className="hidden w-60 shrink-0 border-r border-line lg:block" />
      <div className="flex-1">
        <div className="h-14 border-b border-line" />
        <div className="mx-auto max-w-6xl px-4 py-8 sm:px-8">
          <Skeleton className="h-8 w-40" />
        </div>
      </div>
    </div>
  );
}

function SignedInLayout() {
  const { layout } = useText();
  return (
    <div className="flex min-h-dvh">
      <a
        href="#content"
        className="sr-only z-60 rounded-lg bg-solid px-4 py-2 text-on-solid focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        {layout.skip}
      </a>
      <aside className="sticky top-0 hidden h-dvh w-60 shrink-0 flex-col overflow-y-auto border-r border-line lg:flex">
        <div className="flex h-14 items-center px-5">
          <Brand />
        </div>
        <Navigation />
      </aside>
      <div className="flex min-w-0 flex-1 flex-col">
        <header className="sticky top-0 z-30 flex h-14 items-center justify-between gap-2 border-b border-line bg-canvas/85 px-4 backdrop-blur sm:px-8">
          <div className="flex items-center gap-2 lg:hidden">
            <SmallNavigation />
            <span className="hidden sm:block">
              <Brand />
            </span>
          </div>
          <div className="ml-auto flex items-center gap-1">
            <BalanceChip />
            <SettingsMenu />
            <UserMenu />
          </div>
        </header>
        <main
          id="content"
          tabIndex={-1}
          className="mx-auto w-full max-w-6xl flex-1 px-4 py-8 outline-none sm:px-8"
        >
          <LowBalanceNote />
          <Outlet />
        </main>
      </div>
    </div>
  );
}

/** The menus for language and theme; on the sign-in pages too. */
export function SettingsMenu() {
  const { language, choose, texts } = useLanguage();
  const [theme, chooseTheme] = useTheme();
  const { layout } = texts;
  return (
    <>
      <ChoiceMenu
        label={layout.language}
        trigger={<Languages aria-hidden="true" />}
        groups={[
          {
            label: layout.language,
            value: language,
            choices: [
              { value: "en", label: languages.en },
              { value: "zh", label: languages.zh },
            ],
            onChoose: choose,
          },
        ]}
      />
      <ChoiceMenu
        label={layout.theme}
        trigger={<SunMoon aria-hidden="true" />}
        groups={[
          {
            label: layout.theme,
            value: theme,
            choices: [
              { value: "system", label: layout.themeSystem },
              { value: "light", label: layout.themeLight },
              { value: "dark", label: layout.themeDark },
            ],
            onChoose: chooseTheme,
          },
        ]}
      />
    </>
  );
}

function UserMenu() {
  const { layout } = useText();
  const { user, account } = useSession();
  const navigate = useNavigate();
  const queries = useQueryClient();
  const signOut = useMutation(SessionService.method.signOut, {
    onSuccess: async () => {
      await navigate({ to: "/sign-in" });
      queries.clear();
    },
  });
  return (
    <ChoiceMenu
      label={layout.user}
      trigger={<CircleUser aria-hidden="true" />}
      groups={[]}
      head={
        <>
          <p className="font-medium">
            {user.name || user.email || user.maskedPhone || account.name}
          </p>
          <p className="text-xs text-muted">{account.name}</p>
        </>
      }
      footer={[
        {
          label: layout.settings,
          icon: <Settings aria-hidden="true" />,
          onSelect: () => void navigate({ to: "/settings" }),
        },
        {
          label: layout.signOut,
          icon: <LogOut aria-hidden="true" />,
          onSelect: () => signOut.mutate({}),
        },
      ]}
    />
  );
}

// The navigation: the list of pages, drawn at the side and, on narrow windows, behind a button.

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
  { to: "/finance", icon: ChartCandlestick, title: ({ layout }) => layout.finance },
  { to: "/codes", icon: Ticket, title: ({ layout }) => layout.codes },
  { to: "/audit", icon: ShieldCheck, title: ({ layout }) => layout.audit },
  { to: "/system", icon: Server, title: ({ layout }) => layout.system },
];

function Brand() {
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

function Navigation({ onChosen }: { onChosen?: () => void }) {
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

function SmallNavigation() {
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
