/** Dialogs that show the secret of a key: once when it is created, and again after a code by SMS. */
import { useMutation } from "@connectrpc/connect-query";
import { Download } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { Key } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../common/language.tsx";
import { snippets } from "../common/snippets.ts";
import { cheapestTextModel, usePrices } from "../models/prices.tsx";
import { Button } from "../ui/button.tsx";
import { ActionCode, codeDigits } from "../ui/code-field.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { copyText, saveFile } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { FormDialog } from "../ui/form.tsx";

/** The dialog. It stays until it is closed on purpose. */
export function SecretDialog({
  secret,
  apiKey,
  isAgain,
  onClose,
}: {
  secret: string;
  apiKey: Key;
  /** Whether it was shown before, and so can be again. */
  isAgain: boolean;
  onClose: () => void;
}) {
  const { keys: text, common } = useText();
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  const [isSaved, setSaved] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const prices = usePrices();
  const model = apiKey.models[0] ?? cheapestTextModel(prices.data);
  useWarning(!isSaved);
  const copy = async (): Promise<void> => {
    const isDone = await copyText(secret);
    setOutcome(isDone ? "copied" : "failed");
    if (isDone) setSaved(true);
    else field.current?.select();
  };
  const close = (): void => (isSaved || isLeaving ? onClose() : setLeaving(true));
  return (
    <Dialog
      isOpen
      isSticky
      width="wide"
      onClose={close}
      initialFocus={field}
      title={text.onceTitle}
      description={isAgain ? text.onceHintAgain : text.onceHint}
      footer={
        <>
          {isLeaving && !isSaved && (
            <p role="alert" className="mr-auto self-center text-[0.8125rem] text-bad">
              {isAgain ? text.onceLeaveTextAgain : text.onceLeaveText}
            </p>
          )}
          <Button onClick={close} tone={isSaved ? "primary" : "secondary"}>
            {isLeaving && !isSaved ? text.onceLeaveConfirm : text.onceDone}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-5">
        <div className="flex flex-wrap gap-2">
          <input
            ref={field}
            readOnly
            aria-label={text.secret}
            value={secret}
            spellCheck={false}
            autoComplete="off"
            onFocus={(event) => event.target.select()}
            onCopy={() => setSaved(true)}
            className="field min-w-0 flex-1 basis-64 font-mono text-[0.8125rem]"
          />
          <Button tone="primary" size="medium" onClick={() => void copy()}>
            {outcome === "copied" ? common.copied : text.onceCopy}
          </Button>
          <Button size="medium" onClick={() => (downloadEnv(secret), setSaved(true))}>
            <Download aria-hidden="true" />
            {text.onceEnv}
          </Button>
        </div>
        <p
          role="status"
          className={outcome === "failed" ? "text-[0.8125rem] text-warn" : "sr-only"}
        >
          {outcome === "failed" ? common.notCopied : outcome === "copied" ? common.copied : ""}
        </p>
        {model !== undefined && (
          <div className="min-w-0">
            <h3 className="mb-2 text-[0.8125rem] font-medium">{text.onceUse}</h3>
            <CodeTabs
              label={text.onceSnippets}
              versions={snippets({ origin: location.origin, model, key: secret })}
            />
          </div>
        )}
      </div>
    </Dialog>
  );
}

/** Warns before the browser leaves with the secret on its page. */
function useWarning(isOn: boolean): void {
  useEffect(() => {
    if (!isOn) return undefined;
    const warn = (event: BeforeUnloadEvent): void => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isOn]);
}

function downloadEnv(secret: string): void {
  const lines = `UAS_API_KEY=${secret}\nOPENAI_BASE_URL=${location.origin}/v1\nOPENAI_API_KEY=${secret}\n`;
  saveFile(".env", new Blob([lines], { type: "text/plain" }));
}

/** The dialog. */
export function RevealDialog({
  apiKey,
  onClose,
  onSecret,
}: {
  apiKey: Key;
  onClose: () => void;
  onSecret: (secret: string) => void;
}) {
  const { keys: text } = useText();
  const [code, setCode] = useState("");
  const reveal = useMutation(KeyService.method.revealKey, {
    onSuccess: ({ secret }) => onSecret(secret),
    // The secret is in the dialog that follows, and in no memory of queries.
    gcTime: 0,
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.again(apiKey.name || apiKey.masked)}
      onSubmit={() => reveal.mutate({ keyId: apiKey.keyId, code })}
      submit={text.againShow}
      isBusy={reveal.isPending}
      canSubmit={code.length === codeDigits}
      error={reveal.error}
    >
      <ActionCode
        action={CodeAction.REVEAL_KEY}
        subjectId={apiKey.keyId}
        value={code}
        onChange={setCode}
      />
    </FormDialog>
  );
}
