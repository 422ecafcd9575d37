/** The users of an account, and the operator's actions on them. */
import { createClient } from "@connectrpc/connect";
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { Link2, MonitorSmartphone, Trash2, UserPlus, Users } from "lucide-react";
import { useState } from "react";
import type { Account } from "../../../gen/uas/account/v1/account_pb.ts";
import { SessionService } from "../../../gen/uas/account/v1/session_service_pb.ts";
import { type User, UserRole } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { userName } from "../accounts/account.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { transport } from "../common/rpc.ts";
import { SessionTable } from "../settings/sessions.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Confirm, Sheet } from "../ui/dialog.tsx";
import { SegmentsField, TextField } from "../ui/field.tsx";
import { FormDialog, useAction, useDone } from "../ui/form.tsx";
import { ActionMenu } from "../ui/menu.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { agoColumn, type Column, QueryTable } from "../ui/table.tsx";

/** The most users that are fetched: an account has a handful. */
const usersMax = 1_000;

interface Open {
  readonly kind: "link" | "sessions" | "remove";
  readonly user: User;
}

/** The list of users; adds, removes and signs them in by link. */
export function UsersCard({ account: { accountId } }: { account: Account }) {
  const texts = useText();
  const { accounts: text } = texts;
  const query = useQuery(UserService.method.listUsers, {
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
      <QueryTable
        query={query}
        label={text.users}
        columns={columnsOf(texts, setOpen)}
        rows={query.data?.users}
        keyOf={({ userId }) => userId}
        empty={<Empty icon={<Users />} title={text.noUsers} hint={text.noUsersHint} />}
      />
      {isAdding && <AddUserDialog accountId={accountId} onClose={() => setAdding(false)} />}
      {open?.kind === "link" && <LinkDialog user={open.user} onClose={close} />}
      <SessionsSheet user={open?.kind === "sessions" ? open.user : undefined} onClose={close} />
      {open?.kind === "remove" && <RemoveDialog user={open.user} onClose={close} />}
    </Card>
  );
}

function columnsOf(
  { accounts: text, common }: Texts,
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
    agoColumn({
      id: "signIn",
      title: text.lastSignIn,
      from: "md",
      none: common.never,
      time: ({ signInTime }) => signInTime,
    }),
    {
      id: "menu",
      title: common.actionsColumn,
      isTight: true,
      cell: (user) => <UserMenu user={user} onOpen={onOpen} />,
    },
  ];
}

function UserMenu({ user, onOpen }: { user: User; onOpen: (open: Open) => void }) {
  const { accounts: text, common } = useText();
  return (
    <ActionMenu
      label={common.actions(userName(user))}
      items={[
        {
          label: text.createLink,
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
  );
}

function RemoveDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { accounts: text } = useText();
  const done = useDone(onClose);
  const remove = useMutation(UserService.method.deleteUser, {
    onSuccess: () => done(text.didRemove(userName(user))),
  });
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => remove.mutate({ userId: user.userId })}
      title={text.removeTitle(userName(user))}
      confirm={text.removeConfirm}
      isBusy={remove.isPending}
      error={remove.error}
    >
      <p>{text.removeText}</p>
    </Confirm>
  );
}

function AddUserDialog({ accountId, onClose }: { accountId: string; onClose: () => void }) {
  const { accounts: text } = useText();
  const [form, setForm] = useState({
    name: "",
    phone: "",
    role: "member" as "member" | "operator",
  });
  const done = useDone(onClose);
  const add = useMutation(UserService.method.createUser, {
    onSuccess: () => done(text.userAdded),
  });
  const submit = (): void => {
    const role = form.role === "operator" ? UserRole.OPERATOR : UserRole.MEMBER;
    add.mutate({ accountId, name: form.name, phone: form.phone, role });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.addUser}
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
      <SegmentsField
        label={text.role}
        value={form.role}
        choices={[
          { value: "member", label: text.roles.member },
          { value: "operator", label: text.roles.operator },
        ]}
        onChoose={(role) => setForm({ ...form, role })}
        hint={text.roleHint}
      />
    </FormDialog>
  );
}

const users = createClient(UserService, transport);

/**
 * Creates a sign-in link on a click, because a new link invalidates the one before, and shows it
 * once.
 */
function LinkDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { accounts: text } = useText();
  const [link, setLink] = useState<string>();
  // No mutation: the token must not stay in the cache of queries.
  const { run, isBusy, error } = useAction(async () => {
    const { token } = await users.createSignInLink({ userId: user.userId });
    setLink(`${location.origin}/console/welcome#${token}`);
  });
  const title = text.linkTitle(userName(user));
  if (link !== undefined) {
    return (
      <OnceDialog
        title={title}
        description={text.linkHint}
        secret={link}
        label={text.linkLabel}
        onClose={onClose}
      />
    );
  }
  return (
    <FormDialog
      onClose={onClose}
      title={title}
      description={text.linkText}
      onSubmit={run}
      submit={text.linkConfirm}
      isBusy={isBusy}
      error={error}
    />
  );
}

/** The sessions of a user, each with a button that ends it; open while there is a user. */
function SessionsSheet({ user, onClose }: { user: User | undefined; onClose: () => void }) {
  const { accounts: text, settings } = useText();
  const { data, error } = useQuery(
    SessionService.method.listSessions,
    user === undefined ? skipToken : { userId: user.userId },
  );
  const done = useDone();
  const revoke = useMutation(SessionService.method.revokeSession, {
    onSuccess: () => done(settings.sessionEnded),
  });
  return (
    <Sheet
      isOpen={user !== undefined}
      onClose={onClose}
      title={user && text.sessionsTitle(userName(user))}
    >
      <ErrorNote error={error ?? revoke.error} />
      <SessionTable
        sessions={data?.sessions}
        onEnd={(sessionId) => revoke.mutate({ sessionId })}
        empty={<Empty icon={<MonitorSmartphone />} title={text.noSessions} />}
      />
    </Sheet>
  );
}
