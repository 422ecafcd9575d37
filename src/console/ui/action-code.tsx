/** A code by SMS before something delicate: asked for by a button, so that opening a dialog never costs one. */
import { useMutation } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import type { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { useText } from "../language.tsx";
import { useSession } from "../session.tsx";
import { Button, buttonClass } from "./button.tsx";
import { CodeField } from "./code-field.tsx";
import { ErrorNote } from "./show.tsx";

/** Sends a code for one action on one subject, and has the field for it. */
export function ActionCode({
  action,
  subjectId,
  value,
  onChange,
}: {
  action: CodeAction;
  subjectId: string;
  value: string;
  onChange: (code: string) => void;
}) {
  const { code: text, keys } = useText();
  const { user } = useSession();
  const send = useMutation(SessionService.method.sendActionCode);
  const ask = (): void => send.mutate({ action, subjectId });
  const sent = send.data?.sent;
  if (user.maskedPhone === "") {
    return (
      <div className="flex flex-col items-start gap-3">
        <p>{text.noPhone}</p>
        <Link to="/settings" className={buttonClass("primary")}>
          {text.toSettings}
        </Link>
      </div>
    );
  }
  if (sent === undefined) {
    return (
      <div className="flex flex-col items-start gap-3">
        <p className="text-muted">{text.prove(user.maskedPhone)}</p>
        <Button tone="primary" isBusy={send.isPending} onClick={ask}>
          {keys.againSend}
        </Button>
        <ErrorNote error={send.error} />
      </div>
    );
  }
  return (
    <>
      <CodeField
        sent={sent}
        value={value}
        onChange={onChange}
        onResend={ask}
        isSending={send.isPending}
      />
      <ErrorNote error={send.error} />
    </>
  );
}
