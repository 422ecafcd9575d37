/**
 * Dialogs that show the secret of a key: once when it is created, and again after a code by SMS.
 */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import type { Key } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useText } from "../common/language.tsx";
import { snippets } from "../common/snippets.ts";
import { cheapestTextModel, usePrices } from "../models/prices.tsx";
import { ActionCode, codeDigits } from "../ui/code-field.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { FormDialog } from "../ui/form.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";

/** Shows the secret of a key, with examples that use it. */
export function SecretDialog({
  secret,
  apiKey,
  isAgain,
  onClose,
}: {
  secret: string;
  apiKey: Key;
  /** Whether it can be shown again. */
  isAgain: boolean;
  onClose: () => void;
}) {
  const { keys: text } = useText();
  const prices = usePrices();
  const model = apiKey.models[0] ?? cheapestTextModel(prices.data);
  const url = `${apiOrigin()}/v1`;
  return (
    <OnceDialog
      width="wide"
      title={text.onceTitle}
      description={isAgain ? text.onceHintAgain : text.onceHint}
      secret={secret}
      label={text.secret}
      copy={text.onceCopy}
      file={{
        label: text.onceEnv,
        name: ".env",
        content: `UAS_API_KEY=${secret}\nOPENAI_BASE_URL=${url}\nOPENAI_API_KEY=${secret}\n`,
      }}
      warning={isAgain ? text.onceWarningAgain : text.onceWarning}
      onClose={onClose}
    >
      {model !== undefined && (
        <div className="min-w-0">
          <h3 className="mb-2 text-[0.8125rem] font-medium">{text.onceUse}</h3>
          <CodeTabs
            label={text.onceSnippets}
            versions={snippets({ origin: apiOrigin(), model, key: secret })}
          />
        </div>
      )}
    </OnceDialog>
  );
}

/** Asks for a code by SMS, and gets the secret of a key for it. */
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
    // The secret is in the dialog that follows, and not in the cache of queries.
    gcTime: 0,
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.revealTitle(apiKey.name || apiKey.masked)}
      onSubmit={() => reveal.mutate({ keyId: apiKey.keyId, code })}
      submit={text.revealConfirm}
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
