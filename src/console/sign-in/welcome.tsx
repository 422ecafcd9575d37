/** Where one-time links lead: the token stands behind the `#`, which browsers send to nobody. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { Link, useRouter } from "@tanstack/react-router";
import { useEffect, useRef, useState } from "react";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { useText } from "../common/language.tsx";
import { SignInLayout } from "../layout/outside.tsx";
import { buttonClass } from "../ui/button.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** The page. Uses the token at once and takes it out of the address. */
export function WelcomePage() {
  const { signIn } = useText();
  const queries = useQueryClient();
  const router = useRouter();
  const { mutate, error } = useMutation(SessionService.method.signInWithLink, {
    onSuccess: () => {
      queries.clear();
      void router.navigate({ to: "/", replace: true });
    },
  });
  const [token] = useState(() => location.hash.slice(1));
  const isUsed = useRef(false);
  useEffect(() => {
    document.title = `${signIn.welcomeTitle} · UAS Gateway`;
    // Effects may run again; a token works once.
    if (token === "" || isUsed.current) return;
    isUsed.current = true;
    history.replaceState(history.state, "", location.pathname);
    mutate({ token });
  }, [mutate, token, signIn.welcomeTitle]);
  const isMissing = token === "";
  if (error === null && !isMissing) {
    return (
      <SignInLayout>
        <div role="status" className="text-center">
          <h1 className="text-xl font-semibold tracking-tight">{signIn.welcomeTitle}</h1>
          <p className="mt-1 text-muted">{signIn.welcomeHint}</p>
        </div>
      </SignInLayout>
    );
  }
  return (
    <SignInLayout>
      <h1 className="text-xl font-semibold tracking-tight">{signIn.linkTitle}</h1>
      <p className="mt-1 mb-4 text-muted">{isMissing ? signIn.linkMissing : signIn.linkHint}</p>
      <ErrorNote error={error} />
      <Link to="/sign-in" className={`${buttonClass("primary", "medium")} mt-4 w-full`}>
        {signIn.toSignIn}
      </Link>
    </SignInLayout>
  );
}
