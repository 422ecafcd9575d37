/** Accounts and users in the lists of other pages: name, state, filter. */
import { useQuery } from "@connectrpc/connect-query";
import { Link } from "@tanstack/react-router";
import { X } from "lucide-react";
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import type { User } from "../../../gen/uas/account/v1/user_pb.ts";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { FilterField } from "../ui/filter-bar.tsx";
import { Badge } from "../ui/show.tsx";
import type { Column } from "../ui/table.tsx";

/** Maximum number of accounts whose names are fetched; older ones are shown by their id. */
const namesMax = 1_000;

/** The names of accounts by their id; for operators. @param isOn whether to fetch them */
export function useAccountNames(isOn: boolean): ReadonlyMap<string, string> {
  const { data } = useQuery(
    AccountService.method.listAccounts,
    { pageSize: namesMax },
    { enabled: isOn, staleTime: 60_000 },
  );
  return new Map((data?.accounts ?? []).map(({ accountId, name }) => [accountId, name]));
}

/** The display name of a user: the name, else what they sign in with. */
export function userName({ name, email, maskedPhone, userId }: User): string {
  return name || email || maskedPhone || userId.slice(-4);
}

/** The state of an account. */
export function AccountBadge({ account: { state } }: { account: Account }) {
  const { accounts: text } = useText();
  if (state === AccountState.ACTIVE) return <Badge tone="good">{text.active}</Badge>;
  if (state === AccountState.CLOSED) return <Badge tone="neutral">{text.closed}</Badge>;
  if (state === AccountState.ERASED) return <Badge tone="neutral">{text.erased}</Badge>;
  return <Badge tone="bad">{text.suspended}</Badge>;
}

/** Narrows a list of all accounts to one: a field for its id, or the account that was chosen. */
export function AccountFilter({
  accountId,
  onChoose,
}: {
  /** All accounts by default. */
  accountId: string | undefined;
  onChoose: (accountId: string | undefined) => void;
}) {
  const { accounts: text, common } = useText();
  const names = useAccountNames(accountId !== undefined);
  if (accountId === undefined) {
    return <FilterField label={text.id} onChoose={onChoose} className="sm:w-44" />;
  }
  return (
    <Button onClick={() => onChoose(undefined)} className="min-w-0">
      <span className="sr-only">{common.account}: </span>
      <span className="max-w-40 truncate">{names.get(accountId) ?? accountId.slice(-12)}</span>
      <X aria-hidden="true" />
    </Button>
  );
}

/** The column with the account of a row: its name, as a link to its page. */
export function accountColumn<Row extends { readonly accountId: string }>({
  names,
  ...column
}: Omit<Column<Row>, "id" | "cell"> & { names: ReadonlyMap<string, string> }): Column<Row> {
  return {
    ...column,
    id: "account",
    cell: ({ accountId }) =>
      accountId === "" ? (
        <span className="text-muted">—</span>
      ) : (
        <AccountLink accountId={accountId} name={names.get(accountId) ?? accountId.slice(-12)} />
      ),
  };
}

function AccountLink({ accountId, name }: { accountId: string; name: string }) {
  return (
    <Link
      to="/accounts/$accountId"
      params={{ accountId }}
      title={accountId}
      className="block max-w-40 truncate rounded underline-offset-4 hover:underline"
    >
      {name}
    </Link>
  );
}

/** An account in the details of something, by its id, as a link to its page. */
export function AccountIdLink({ accountId }: { accountId: string }) {
  return (
    <Link
      to="/accounts/$accountId"
      params={{ accountId }}
      className="font-mono text-xs text-accent underline underline-offset-4"
    >
      {accountId}
    </Link>
  );
}

/** Maximum number of users whose names are fetched; others are shown by their id. */
const usersMax = 1_000;

const userPrefix = "user ";

/** Returns the display name of who did something: the actor of an audit entry. */
export function useActorName(): (actor: string) => string {
  const { audit: text } = useText();
  const { data } = useQuery(
    UserService.method.listUsers,
    { pageSize: usersMax },
    { staleTime: 60_000 },
  );
  const names = new Map((data?.users ?? []).map((user) => [user.userId, userName(user)]));
  return (actor) => {
    if (actor === "command line") return text.commandLine;
    if (actor === "operator token") return text.operatorToken;
    if (!actor.startsWith(userPrefix)) return actor;
    const id = actor.slice(userPrefix.length);
    return names.get(id) ?? text.someUser(id.slice(-4));
  };
}
