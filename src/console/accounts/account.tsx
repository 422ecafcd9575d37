/** How accounts and users appear in the lists of other pages: name, state, filter. */
import { useQuery } from "@connectrpc/connect-query";
import { X } from "lucide-react";
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import type { User } from "../../../gen/uas/account/v1/user_pb.ts";
import { useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { FilterField } from "../ui/filter-bar.tsx";
import { Badge } from "../ui/show.tsx";

/** The most accounts whose names are asked for; older ones are shown by their id. */
const namesMax = 1_000;

/** The names by account id; for operators. @param isOn whether they are needed at all */
export function useAccountNames(isOn: boolean): ReadonlyMap<string, string> {
  const { data } = useQuery(
    AccountService.method.listAccounts,
    { pageSize: namesMax },
    { enabled: isOn, staleTime: 60_000 },
  );
  return new Map((data?.accounts ?? []).map(({ accountId, name }) => [accountId, name]));
}

/** What to call a person: the name, else what they sign in with. */
export function userName({ name, email, maskedPhone, userId }: User): string {
  return name || email || maskedPhone || userId.slice(-4);
}

/** The state in a word. */
export function AccountBadge({ account: { state } }: { account: Account }) {
  const {
    operator: { accounts: text },
  } = useText();
  return state === AccountState.SUSPENDED ? (
    <Badge tone="bad">{text.suspended}</Badge>
  ) : (
    <Badge tone="good">{text.active}</Badge>
  );
}

/** The field, or the account that was chosen. */
export function AccountFilter({
  accountId,
  onChoose,
}: {
  /** Default: all accounts. */
  accountId: string | undefined;
  onChoose: (accountId: string | undefined) => void;
}) {
  const {
    operator: { accounts: text },
    common,
  } = useText();
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
