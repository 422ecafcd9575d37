/** Pages for when there is none. */
import { Link, type ErrorComponentProps } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { useText } from "./language.tsx";
import { buttonClass } from "./ui/button.tsx";
import { Empty } from "./ui/card.tsx";
import { ErrorNote } from "./ui/show.tsx";

/** An address without a page. */
export function MissingPage() {
  const { common } = useText();
  return (
    <main className="mx-auto max-w-xl py-24">
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
    </main>
  );
}

/** A page that broke: what it said, and another try. */
export function BrokenPage({ error, reset }: ErrorComponentProps) {
  const { common } = useText();
  return (
    <main className="mx-auto max-w-xl px-4 py-24">
      <h1 className="mb-4 text-xl font-semibold">{common.brokenTitle}</h1>
      <ErrorNote error={error} onRetry={reset} />
    </main>
  );
}
