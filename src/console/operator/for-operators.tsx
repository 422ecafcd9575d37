/** What stands around the operator's pages. */
import { Link, Outlet } from "@tanstack/react-router";
import { Compass } from "lucide-react";
import { useText } from "../language.tsx";
import { useSession } from "../session.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Empty } from "../ui/card.tsx";

/** Draws the page for operators; for others there is none. What they may do is decided by the gateway, not here. */
export function ForOperators() {
  const { common } = useText();
  const { isOperator } = useSession();
  if (isOperator) return <Outlet />;
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
