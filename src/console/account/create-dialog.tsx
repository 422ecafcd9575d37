/** The dialog that makes an account. */
import { useMutation } from "@connectrpc/connect-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";

/** Makes an account, and goes to it. */
export function CreateAccountDialog({ onClose }: { onClose: () => void }) {
  const {
    operator: { accounts: text },
  } = useText();
  const [name, setName] = useState("");
  const navigate = useNavigate();
  const done = useDone();
  const create = useMutation(AccountService.method.createAccount, {
    onSuccess: async ({ account }) => {
      if (account === undefined) return;
      const { accountId } = account;
      await navigate({ to: "/accounts/$accountId", params: { accountId } });
      await done(text.didCreate(account.name));
    },
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.createTitle}
      onSubmit={() => create.mutate({ name })}
      submit={text.create}
      isBusy={create.isPending}
      error={create.error}
    >
      <TextField
        label={text.name}
        hint={text.nameHint}
        value={name}
        maxLength={200}
        required
        autoFocus
        onChange={(event) => setName(event.target.value)}
      />
    </FormDialog>
  );
}
