/** The dialog that lets somebody in. */
import { useMutation } from "@connectrpc/connect-query";
import { type FormEvent, useId, useState } from "react";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { Segments } from "../ui/select.tsx";
import { ErrorNote } from "../ui/show.tsx";

/** The dialog. */
export function AddUserDialog({ accountId, onClose }: { accountId: string; onClose: () => void }) {
  const {
    operator: { accounts: text },
    common,
  } = useText();
  const [form, setForm] = useState({
    name: "",
    phone: "",
    role: "member" as "member" | "operator",
  });
  const formId = useId();
  const done = useDone();
  const add = useMutation(UserService.method.createUser, {
    onSuccess: async () => {
      onClose();
      await done(text.userAdded);
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    const role = form.role === "operator" ? UserRole.OPERATOR : UserRole.MEMBER;
    add.mutate({ accountId, name: form.name, phone: form.phone, role });
  };
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text.addUserTitle}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button type="submit" form={formId} tone="primary" isBusy={add.isPending}>
            {text.addUser}
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-5">
        <TextField
          label={text.userName}
          value={form.name}
          maxLength={200}
          required
          autoFocus
          onChange={(event) => setForm({ ...form, name: event.target.value })}
        />
        <TextField
          label={text.phone}
          hint={text.phoneHint}
          type="tel"
          placeholder="+86 138 0013 8000"
          value={form.phone}
          onChange={(event) => setForm({ ...form, phone: event.target.value })}
        />
        <div>
          <Segments
            label={text.role}
            value={form.role}
            choices={[
              { value: "member", label: text.roles.member },
              { value: "operator", label: text.roles.operator },
            ]}
            onChoose={(role) => setForm({ ...form, role })}
          />
          <p className="mt-1.5 text-xs text-muted">{text.roleHint}</p>
        </div>
        <ErrorNote error={add.error} />
      </form>
    </Dialog>
  );
}
