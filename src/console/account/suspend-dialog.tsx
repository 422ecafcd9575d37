/** The dialog that suspends an account. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";

/** Asks why, and suspends. */
export function SuspendDialog({ account, onClose }: { account: Account; onClose: () => void }) {
  const {
    operator: { accounts: text },
  } = useText();
  const { accountId, name } = account;
  const [reason, setReason] = useState("");
  const done = useDone();
  const suspend = useMutation(AccountService.method.suspendAccount, {
    onSuccess: async () => {
      onClose();
      await done(text.didSuspend(name));
    },
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.suspendTitle(name)}
      description={text.suspendText}
      onSubmit={() => suspend.mutate({ accountId, reason })}
      submit={text.suspendConfirm}
      tone="danger"
      isBusy={suspend.isPending}
      error={suspend.error}
    >
      <TextField
        label={text.suspendReason}
        hint={text.suspendHint}
        value={reason}
        maxLength={500}
        required
        autoFocus
        onChange={(event) => setReason(event.target.value)}
      />
    </FormDialog>
  );
}
