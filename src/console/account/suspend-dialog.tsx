/** The dialog that suspends an account. */
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useId, useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** Asks why, and suspends. */
export function SuspendDialog({ account, onClose }: { account: Account; onClose: () => void }) {
  const {
    operator: { accounts: text },
    common,
  } = useText();
  const { accountId, name } = account;
  const [reason, setReason] = useState("");
  const formId = useId();
  const done = useDone();
  const suspend = useMutation(AccountService.method.suspendAccount, {
    onSuccess: async () => {
      onClose();
      await done(text.didSuspend(name));
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    suspend.mutate({ accountId, reason });
  };
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text.suspendTitle(name)}
      description={text.suspendText}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button type="submit" form={formId} tone="danger" isBusy={suspend.isPending}>
            {text.suspendConfirm}
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-5">
        <TextField
          label={text.suspendReason}
          hint={text.suspendHint}
          value={reason}
          maxLength={500}
          required
          autoFocus
          onChange={(event) => setReason(event.target.value)}
        />
        <ErrorNote error={suspend.error} />
      </form>
    </Dialog>
  );
}
