/** Settings of the signed-in user: profile, sign-in methods, sessions. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useSession } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Facts, PageHead } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { TextField } from "../ui/field.tsx";
import { Form, useDone } from "../ui/form.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { SessionsCard } from "./sessions.tsx";
import { PasswordCard } from "./password.tsx";
import { PhoneCard } from "./phone.tsx";
import { TotpCard } from "./two-factor.tsx";

/** `/settings`. */
export function SettingsPage() {
  const { settings } = useText();
  return (
    <>
      <PageHead title={settings.title} hint={settings.hint} />
      <div className="flex flex-col gap-6">
        <div className="grid grid-cols-1 items-start gap-6 lg:grid-cols-2">
          <ProfileCard />
          <div className="flex flex-col gap-6">
            <PhoneCard />
            <PasswordCard />
            <TotpCard />
          </div>
        </div>
        <SessionsCard />
      </div>
    </>
  );
}

/** The names of the user and of the account. */
function ProfileCard() {
  const { settings: text, common } = useText();
  const { user, account } = useSession();
  const [name, setName] = useState(user.name);
  const [accountName, setAccountName] = useState(account.name);
  const done = useDone();
  const changeUser = useMutation(UserService.method.updateUser);
  const changeAccount = useMutation(AccountService.method.updateAccount);
  const save = async (): Promise<void> => {
    const updateMask = { paths: ["name"] };
    if (name !== user.name) await changeUser.mutateAsync({ user: { name }, updateMask });
    if (accountName !== account.name) {
      const { accountId } = account;
      await changeAccount.mutateAsync({ account: { accountId, name: accountName }, updateMask });
    }
    await done(text.saved);
  };
  return (
    <Card>
      <CardHead title={text.profile} />
      <Form
        className="flex flex-col gap-4 px-5 pb-5"
        onSubmit={() => void save().catch(() => undefined)}
      >
        <TextField
          label={text.name}
          value={name}
          maxLength={200}
          autoComplete="name"
          onChange={(event) => setName(event.target.value)}
        />
        <TextField
          label={text.accountName}
          value={accountName}
          maxLength={200}
          required
          onChange={(event) => setAccountName(event.target.value)}
        />
        <Facts rows={[[text.accountId, <Id key="id" value={account.accountId} />]]} />
        <ErrorNote error={changeUser.error ?? changeAccount.error} />
        <Button
          type="submit"
          className="self-start"
          isBusy={changeUser.isPending || changeAccount.isPending}
          disabled={name === user.name && accountName === account.name}
        >
          {common.save}
        </Button>
      </Form>
    </Card>
  );
}
