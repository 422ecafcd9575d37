/** The dialog that makes an account. */
import { useMutation } from "@connectrpc/connect-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useId, useState } from "react";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** Makes an account, and goes to it. */
export function CreateAccountDialog({ onClose }: { onClose: () => void }) {
  const {
    operator: { accounts: text },
    common,
  } = useText();
  const [name, setName] = useState("");
  const formId = useId();
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
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    create.mutate({ name });
  };
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text.createTitle}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button type="submit" form={formId} tone="primary" isBusy={create.isPending}>
            {text.create}
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-5">
        <TextField
          label={text.name}
          hint={text.nameHint}
          value={name}
          maxLength={200}
          required
          autoFocus
          onChange={(event) => setName(event.target.value)}
        />
        <ErrorNote error={create.error} />
      </form>
    </Dialog>
  );
}
