/** The frame of every page inside: navigation at the left, money and settings above. */
import { Dialog } from "@base-ui/react/dialog";
import { useMutation } from "@connectrpc/connect-query";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { useQueryClient } from "@tanstack/react-query";
import { CircleUser, Languages, LogOut, Menu, Settings, SunMoon, X } from "lucide-react";
import { useState } from "react";
import { SessionService } from "../../gen/uas/account/v1/session_service_pb.ts";
import { BalanceChip } from "./balance-chip.tsx";
import { LowBalanceNote } from "./billing/low-balance.tsx";
import { languages, useLanguage, useText } from "./language.tsx";
import { customerPages, type Destination, operatorPages } from "./navigation.ts";
import { isSignedOut } from "./rpc.ts";
import { useSession, useSessionQuery } from "./session.tsx";
import { useTheme } from "./theme.tsx";
import { buttonClass } from "./ui/button.tsx";
import { Skeleton } from "./ui/card.tsx";
import { ChoiceMenu } from "./ui/menu.tsx";
import { ErrorNote } from "./ui/show.tsx";

/** Draws the frame once it is known who is signed in. */
export function Frame() {
  const { data, error, refetch } = useSessionQuery();
  if (data !== undefined) return <Inside />;
  if (error === null || isSignedOut(error)) return <Waiting />;
  return (
    <main className="mx-auto max-w-xl px-4 py-24">
      <ErrorNote error={error} onRetry={() => void refetch()} />
    </main>
  );
}

/** Keeps the places of the frame, so that nothing jumps. */
function Waiting() {
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

function Inside() {
  const { shell } = useText();
  return (
    <div className="flex min-h-dvh">
      <a
        href="#content"
        className="sr-only z-60 rounded-lg bg-solid px-4 py-2 text-on-solid focus:not-sr-only focus:fixed focus:top-2 focus:left-2"
      >
        {shell.skip}
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
  const { shell } = useText();
  const { isOperator } = useSession();
  return (
    <nav aria-label={shell.navigation} className="flex flex-1 flex-col gap-6 px-3 py-3">
      <Destinations pages={customerPages} {...(onChosen && { onChosen })} />
      {isOperator && (
        <div>
          <h2 className="px-2.5 pb-1.5 text-xs font-medium text-muted">{shell.operator}</h2>
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
  const { shell, common } = useText();
  const [isOpen, setOpen] = useState(false);
  return (
    <Dialog.Root open={isOpen} onOpenChange={setOpen}>
      <Dialog.Trigger aria-label={shell.navigation} className={buttonClass("quiet", "icon")}>
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

/** How the console looks: language and theme. On the pages outside the frame too. */
export function SettingsMenu() {
  const { language, choose, texts } = useLanguage();
  const [theme, chooseTheme] = useTheme();
  const { shell } = texts;
  return (
    <>
      <ChoiceMenu
        label={shell.language}
        trigger={<Languages aria-hidden="true" />}
        groups={[
          {
            label: shell.language,
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
        label={shell.theme}
        trigger={<SunMoon aria-hidden="true" />}
        groups={[
          {
            label: shell.theme,
            value: theme,
            choices: [
              { value: "system", label: shell.themeSystem },
              { value: "light", label: shell.themeLight },
              { value: "dark", label: shell.themeDark },
            ],
            onChoose: chooseTheme,
          },
        ]}
      />
    </>
  );
}

function UserMenu() {
  const { shell } = useText();
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
      label={shell.user}
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
          label: shell.settings,
          icon: <Settings aria-hidden="true" />,
          onSelect: () => void navigate({ to: "/settings" }),
        },
        {
          label: shell.signOut,
          icon: <LogOut aria-hidden="true" />,
          onSelect: () => signOut.mutate({}),
        },
      ]}
    />
  );
}
