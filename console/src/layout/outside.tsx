/**
 * Pages outside the navigation: the card of the sign-in pages, unknown addresses and pages that
 * failed.
 */
import { type ErrorComponentProps, Link, Outlet } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import type { ReactNode } from "react";
import { useText } from "../common/language.tsx";
import { useSession } from "../common/session.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Empty } from "../ui/card.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { SettingsMenu } from "./layout.tsx";

/** The layout of the sign-in pages: a card in the middle, the logo above it. */
export function SignInLayout({ children }: { children: ReactNode }) {
  return (
    <div className="flex min-h-dvh flex-col">
      <header className="flex h-14 items-center justify-end px-4">
        <SettingsMenu />
      </header>
      <main className="flex flex-1 flex-col items-center px-4 pt-[8vh] pb-16">
        <img src={icon} alt="" className="mb-6 size-12" />
        <div className="w-full max-w-sm rounded-2xl border border-line bg-surface p-6 shadow-card sm:p-8">
          {children}
        </div>
      </main>
    </div>
  );
}

const icon = new URL("../icon.svg", import.meta.url).href;

/** The page for an address that does not exist. */
export function NotFoundPage() {
  return (
    <main className="mx-auto max-w-xl py-24">
      <NotFound />
    </main>
  );
}

function NotFound() {
  const { common } = useText();
  return (
    <>
      <h1 className="sr-only">{common.missingTitle}</h1>
      <Empty
        icon={<Compass />}
        title={common.missingTitle}
        hint={common.missingHint}
        action={
          <Link to="/" className={buttonClass("primary", "medium")}>
            {common.toOverview}
          </Link>
        }
      />
    </>
  );
}

/** A page that failed: its error, and another try. */
export function ErrorPage({ error, reset }: ErrorComponentProps) {
  const { common } = useText();
  return (
    <main className="mx-auto max-w-xl px-4 py-24">
      <h1 className="mb-4 text-xl font-semibold">{common.brokenTitle}</h1>
      <ErrorNote error={error} onRetry={reset} />
    </main>
  );
}

/**
 * Shows a page to operators; other users see that it does not exist. The gateway decides what they
 * may do, not this component.
 */
export function OperatorOnly() {
  const { isOperator } = useSession();
  return isOperator ? <Outlet /> : <NotFound />;
}
