/**
 * The signing secret of webhooks: masked until a code by SMS shows it, rotated and promoted the
 * same way, with instructions for endpoints to verify signatures.
 */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { WebhookSecret } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import type { CodeVersion } from "../common/snippets.ts";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Facts } from "../ui/card.tsx";
import { ActionCode, codeDigits } from "../ui/code-field.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { CopyButton } from "../ui/copy.tsx";
import { CheckField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";
import { ErrorNote, Time } from "../ui/show.tsx";

/** Shows the masked secret, with buttons that reveal, rotate and promote it. */
export function SecretCard() {
  const { webhooks: text } = useText();
  const accountId = useAccountId();
  const [action, setAction] = useState<SecretAction>();
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
            <Button onClick={() => setAction("reveal")}>{text.reveal}</Button>
            {isRotating && !secret.isPromoted && (
              <Button onClick={() => setAction("promote")}>{text.promote}</Button>
            )}
            <Button onClick={() => setAction("rotate")}>{text.rotate}</Button>
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
      {action !== undefined && (
        <SecretDialog action={action} onClose={() => setAction(undefined)} />
      )}
    </Card>
  );
}

type SecretAction = "reveal" | "rotate" | "promote";

const codeActions: Readonly<Record<SecretAction, CodeAction>> = {
  reveal: CodeAction.REVEAL_WEBHOOK_SECRET,
  rotate: CodeAction.ROTATE_WEBHOOK_SECRET,
  promote: CodeAction.ROTATE_WEBHOOK_SECRET,
};

/** Asks for a code by SMS, does the action, and shows the secrets. */
function SecretDialog({ action, onClose }: { action: SecretAction; onClose: () => void }) {
  const { webhooks: text } = useText();
  const [shown, setShown] = useState<WebhookSecret>();
  const titles = { reveal: text.revealTitle, rotate: text.rotateTitle, promote: text.promoteTitle };
  if (shown === undefined) {
    return (
      <ProveDialog action={action} title={titles[action]} onClose={onClose} onDone={setShown} />
    );
  }
  return (
    <OnceDialog width="wide" onClose={onClose} title={titles[action]}>
      <Secrets isWhole secret={shown} />
    </OnceDialog>
  );
}

function ProveDialog({
  action,
  title,
  onClose,
  onDone,
}: {
  action: SecretAction;
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
  // The secret is in the dialog only, and must not stay in the cache of queries.
  const reveal = useMutation(WebhookService.method.getSecret, { onSuccess, gcTime: 0 });
  const rotate = useMutation(WebhookService.method.rotateSecret, { onSuccess, gcTime: 0 });
  const promote = useMutation(WebhookService.method.promoteSecret, { onSuccess, gcTime: 0 });
  const { error, isPending } = { reveal, rotate, promote }[action];
  const submit = (): void => {
    if (action === "reveal") reveal.mutate({ accountId, code });
    if (action === "rotate") rotate.mutate({ accountId, code });
    if (action === "promote") promote.mutate({ accountId, code, dropOld });
  };
  const notes = { reveal: undefined, rotate: text.rotateNote, promote: text.promoteNote };
  return (
    <FormDialog
      onClose={onClose}
      title={title}
      description={notes[action]}
      onSubmit={submit}
      submit={text.proceed}
      isBusy={isPending}
      canSubmit={code.length === codeDigits}
      error={error}
    >
      <ActionCode
        action={codeActions[action]}
        subjectId={accountId}
        value={code}
        onChange={setCode}
      />
      {action === "promote" && (
        <CheckField
          label={text.dropOld}
          checked={dropOld}
          onChange={(event) => setDropOld(event.target.checked)}
        />
      )}
    </FormDialog>
  );
}

/** The secrets, masked or in full. */
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

/** The code in common languages. */
const verification: readonly CodeVersion[] = [
  {
    id: "node",
    title: "Node.js",
    code: `import { createHmac, timingSafeEqual } from "node:crypto";

function isGenuine(rawBody, headers, secret) {
  const expected = createHmac("sha256", secret).update(rawBody).digest();
  const given = Buffer.from(headers["x-ai-service-signature"] ?? "", "hex");
  return given.length === expected.length && timingSafeEqual(given, expected);
}`,
  },
  {
    id: "python",
    title: "Python",
    code: `import hashlib, hmac

def is_genuine(raw_body: bytes, headers, secret: str) -> bool:
    expected = hmac.new(secret.encode(), raw_body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, headers.get("X-AI-Service-Signature", ""))`,
  },
  {
    id: "go",
    title: "Go",
    code: `func isGenuine(rawBody []byte, header http.Header, secret string) bool {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(rawBody)
	given, err := hex.DecodeString(header.Get("X-AI-Service-Signature"))
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}`,
  },
  {
    id: "php",
    title: "PHP",
    code: `function is_genuine(string $rawBody, array $headers, string $secret): bool {
    $expected = hash_hmac('sha256', $rawBody, $secret);
    return hash_equals($expected, $headers['X-AI-Service-Signature'] ?? '');
}`,
  },
];
