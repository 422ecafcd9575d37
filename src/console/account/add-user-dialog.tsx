/** The dialog that lets somebody in. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Segments } from "../ui/select.tsx";

/** The dialog. */
export function AddUserDialog({ accountId, onClose }: { accountId: string; onClose: () => void }) {
  const {
    operator: { accounts: text },
  } = useText();
  const [form, setForm] = useState({
    name: "",
    phone: "",
    role: "member" as "member" | "operator",
  });
  const done = useDone();
  const add = useMutation(UserService.method.createUser, {
    onSuccess: async () => {
      onClose();
      await done(text.userAdded);
    },
  });
  const submit = (): void => {
    const role = form.role === "operator" ? UserRole.OPERATOR : UserRole.MEMBER;
    add.mutate({ accountId, name: form.name, phone: form.phone, role });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.addUserTitle}
      onSubmit={submit}
      submit={text.addUser}
      isBusy={add.isPending}
      error={add.error}
    >
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
    </FormDialog>
  );
}
