/**
 * The layout of every page of a signed-in user: navigation on the left, balance and menus above.
 */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Outlet, useNavigate } from "@tanstack/react-router";
import { CircleUser, Languages, LogOut, Settings, SunMoon } from "lucide-react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { BalanceChip, LowBalanceNote } from "../billing/balance.tsx";
import { languages, useLanguage, useText } from "../common/language.tsx";
import { useTheme } from "../common/preferences.ts";
import { isSignedOut } from "../common/rpc.ts";
import { useSession, useSessionQuery } from "../common/session.tsx";
import { Skeleton } from "../ui/card.tsx";
import { ChoiceMenu } from "../ui/menu.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { Brand, Navigation, SmallNavigation } from "./navigation.tsx";

/** The layout, once the signed-in user is known. */
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
