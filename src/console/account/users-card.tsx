/** The users of an account, and what an operator can do with them. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { Link2, MonitorSmartphone, Trash2, UserPlus, Users } from "lucide-react";
import { useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { type User, UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { userName } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Segments, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { ActionMenu } from "../ui/menu.tsx";
import { Badge, ErrorNote, Time } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { useDone } from "../ui/toast.tsx";
import { LinkDialog, SessionsSheet } from "./user-access.tsx";

/** The most people that are asked for: an account has a handful. */
const usersMax = 1_000;

interface Open {
  readonly kind: "link" | "sessions" | "remove";
  readonly user: User;
}

/** The card. */
export function UsersCard({ account: { accountId } }: { account: Account }) {
  const texts = useText();
  const { accounts: text } = texts.operator;
  const { data, error, refetch } = useQuery(UserService.method.listUsers, {
    accountId,
    pageSize: usersMax,
  });
  const [isAdding, setAdding] = useState(false);
  const [open, setOpen] = useState<Open>();
  const close = (): void => setOpen(undefined);
  return (
    <Card>
      <CardHead
        title={text.users}
        hint={text.usersHint}
        actions={
          <Button onClick={() => setAdding(true)}>
            <UserPlus aria-hidden="true" />
            {text.addUser}
          </Button>
        }
      />
      {error === null ? (
        <Table
          label={text.users}
          columns={columnsOf(texts, setOpen)}
          rows={data?.users}
          keyOf={({ userId }) => userId}
          empty={<Empty icon={<Users />} title={text.noUsers} hint={text.noUsersHint} />}
        />
      ) : (
        <div className="px-5 pb-5">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {isAdding && <AddUserDialog accountId={accountId} onClose={() => setAdding(false)} />}
      {open?.kind === "link" && <LinkDialog user={open.user} onClose={close} />}
      <SessionsSheet user={open?.kind === "sessions" ? open.user : undefined} onClose={close} />
      {open?.kind === "remove" && <RemoveDialog user={open.user} onClose={close} />}
    </Card>
  );
}

function columnsOf(
  { operator: { accounts: text }, common }: Texts,
  onOpen: (open: Open) => void,
): Column<User>[] {
  return [
    {
      id: "name",
      title: text.userName,
      cell: (user) => (
        <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
          <span className="max-w-40 truncate font-medium" title={userName(user)}>
            {userName(user)}
          </span>
          {user.role === UserRole.OPERATOR && (
            <Badge isPlain tone="info">
              {text.roles.operator}
            </Badge>
          )}
        </span>
      ),
    },
    {
      id: "ways",
      title: text.ways,
      from: "sm",
      cell: ({ maskedPhone, email, hasPassword, hasTotp }) => (
        <span className="block max-w-64 break-words">
          {[
            ...(maskedPhone === "" ? [] : [maskedPhone]),
            ...(hasPassword ? [email] : []),
            ...(hasTotp ? [text.wayTotp] : []),
          ].join(" · ") || text.noWay}
        </span>
      ),
    },
    {
      id: "signIn",
      title: text.lastSignIn,
      from: "md",
      cell: ({ signInTime }) => <Time isRelative time={signInTime} none={common.never} />,
    },
    {
      id: "menu",
      title: <span className="sr-only">{common.actions("")}</span>,
      isTight: true,
      cell: (user) => (
        <ActionMenu
          label={common.actions(userName(user))}
          items={[
            {
              label: text.makeLink,
              icon: <Link2 aria-hidden="true" />,
              onSelect: () => onOpen({ kind: "link", user }),
            },
            {
              label: text.sessions,
              icon: <MonitorSmartphone aria-hidden="true" />,
              onSelect: () => onOpen({ kind: "sessions", user }),
            },
            {
              label: text.removeUser,
              icon: <Trash2 aria-hidden="true" />,
              isDanger: true,
              onSelect: () => onOpen({ kind: "remove", user }),
            },
          ]}
        />
      ),
    },
  ];
}

function RemoveDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const {
    operator: { accounts: text },
  } = useText();
  const done = useDone();
  const remove = useMutation(UserService.method.deleteUser, {
    onSuccess: async () => {
      onClose();
      await done(text.didRemove(userName(user)));
    },
  });
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => remove.mutate({ userId: user.userId })}
      title={text.removeTitle(userName(user))}
      confirm={text.removeConfirm}
      isBusy={remove.isPending}
    >
      <p>{text.removeText}</p>
      <ErrorNote error={remove.error} />
    </Confirm>
  );
}

/** The dialog. */
function AddUserDialog({ accountId, onClose }: { accountId: string; onClose: () => void }) {
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
