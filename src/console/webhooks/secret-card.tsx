/** The signing secret of webhooks: masked until a code by SMS shows it, rotated and promoted the same way. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { WebhookSecret } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Facts } from "../ui/card.tsx";
import { ActionCode, codeDigits } from "../ui/code-field.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { CheckField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { ErrorNote, Time } from "../ui/show.tsx";
import { verification } from "./verification.ts";

/** The card. */
export function SecretCard() {
  const { webhooks: text } = useText();
  const accountId = useAccountId();
  const [deed, setDeed] = useState<SecretAction>();
  const { data, error } = useQuery(WebhookService.method.getSecret, { accountId });
  const secret = data?.secret;
  const isRotating = secret !== undefined && secret.other !== "";
  return (
    <Card>
      <CardHead
        title={text.secret}
        hint={text.secretHint}
        actions={
          <>
            <Button onClick={() => setDeed("reveal")}>{text.reveal}</Button>
            {isRotating && !secret.isPromoted && (
              <Button onClick={() => setDeed("promote")}>{text.promote}</Button>
            )}
            <Button onClick={() => setDeed("rotate")}>{text.rotate}</Button>
          </>
        }
      />
      <div className="flex flex-col gap-6 px-5 pb-5">
        <ErrorNote error={error} />
        {secret !== undefined && <Secrets secret={secret} />}
        <div>
          <h3 className="font-medium">{text.verify}</h3>
          <p className="mb-3 text-[0.8125rem] text-muted">{text.verifyHint}</p>
          <CodeTabs label={text.verify} versions={verification} />
        </div>
      </div>
      {deed !== undefined && <SecretDialog deed={deed} onClose={() => setDeed(undefined)} />}
    </Card>
  );
}

/** What can be done. */
type SecretAction = "reveal" | "rotate" | "promote";

const actions: Readonly<Record<SecretAction, CodeAction>> = {
  reveal: CodeAction.REVEAL_WEBHOOK_SECRET,
  rotate: CodeAction.ROTATE_WEBHOOK_SECRET,
  promote: CodeAction.ROTATE_WEBHOOK_SECRET,
};

/** The dialog. */
export function SecretDialog({ deed, onClose }: { deed: SecretAction; onClose: () => void }) {
  const { webhooks: text } = useText();
  const [shown, setShown] = useState<WebhookSecret>();
  const titles = { reveal: text.revealTitle, rotate: text.rotateTitle, promote: text.promoteTitle };
  if (shown === undefined) {
    return <ProveDialog deed={deed} title={titles[deed]} onClose={onClose} onDone={setShown} />;
  }
  return (
    <Dialog
      isOpen
      isSticky
      width="wide"
      onClose={onClose}
      title={titles[deed]}
      footer={
        <Button tone="primary" onClick={onClose}>
          {text.done}
        </Button>
      }
    >
      <Secrets isWhole secret={shown} />
    </Dialog>
  );
}

function ProveDialog({
  deed,
  title,
  onClose,
  onDone,
}: {
  deed: SecretAction;
  title: string;
  onClose: () => void;
  onDone: (secret: WebhookSecret | undefined) => void;
}) {
  const { webhooks: text } = useText();
  const accountId = useAccountId();
  const queries = useQueryClient();
  const [code, setCode] = useState("");
  const [dropOld, setDropOld] = useState(false);
  const onSuccess = async ({ secret }: { secret?: WebhookSecret | undefined }): Promise<void> => {
    onDone(secret);
    await queries.invalidateQueries();
  };
  // What is shown lives in the dialog only: nothing of it stays in the memory of queries.
  const reveal = useMutation(WebhookService.method.getSecret, { onSuccess, gcTime: 0 });
  const rotate = useMutation(WebhookService.method.rotateSecret, { onSuccess, gcTime: 0 });
  const promote = useMutation(WebhookService.method.promoteSecret, { onSuccess, gcTime: 0 });
  const { error, isPending } = { reveal, rotate, promote }[deed];
  const submit = (): void => {
    if (deed === "reveal") reveal.mutate({ accountId, code });
    if (deed === "rotate") rotate.mutate({ accountId, code });
    if (deed === "promote") promote.mutate({ accountId, code, dropOld });
  };
  const notes = { reveal: undefined, rotate: text.rotateNote, promote: text.promoteNote };
  return (
    <FormDialog
      onClose={onClose}
      title={title}
      description={notes[deed]}
      onSubmit={submit}
      submit={text.proceed}
      isBusy={isPending}
      canSubmit={code.length === codeDigits}
      error={error}
    >
      <ActionCode action={actions[deed]} subjectId={accountId} value={code} onChange={setCode} />
      {deed === "promote" && (
        <CheckField
          label={text.dropOld}
          checked={dropOld}
          onChange={(event) => setDropOld(event.target.checked)}
        />
      )}
    </FormDialog>
  );
}

/** The secrets as they are: masked, or whole in the dialog. */
function Secrets({ secret, isWhole = false }: { secret: WebhookSecret; isWhole?: boolean }) {
  const { webhooks: text } = useText();
  const show = (value: string) => (
    <span className="flex items-center gap-1">
      <code className="min-w-0 font-mono text-xs break-all select-all">{value}</code>
      {isWhole && <CopyButton isIcon text={value} />}
    </span>
  );
  return (
    <Facts
      rows={[
        [text.current, show(secret.current)],
        ...(secret.other === ""
          ? []
          : [[secret.isPromoted ? text.old : text.other, show(secret.other)] as const]),
        ...(secret.rotationEndTime === undefined
          ? []
          : [[text.until, <Time key="until" time={secret.rotationEndTime} />] as const]),
      ]}
    />
  );
}
