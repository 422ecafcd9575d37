/** The call log of the account, and for operators of every account. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { AccountFilter } from "../accounts/account.tsx";
import { useText } from "../common/language.tsx";
import { type AllCallSearch, type CallSearch, defined } from "../common/search.ts";
import { useAccountId } from "../common/session.tsx";
import { CallLog } from "./log.tsx";

/** `/calls`. */
export function CallsPage() {
  const { calls: text } = useText();
  const search = useSearch({ from: "/inside/calls" });
  const navigate = useNavigate({ from: "/calls" });
  const accountId = useAccountId();
  const set = (next: CallSearch): void => void navigate({ search: next, replace: true });
  return (
    <CallLog
      title={text.title}
      hint={text.hint}
      accountId={accountId}
      search={search}
      onSearch={set}
    />
  );
}

/** `/all-calls`, for operators. */
export function AllCallsPage() {
  const { allCalls: text } = useText();
  const { account, ...search } = useSearch({ from: "/inside/operator/all-calls" });
  const navigate = useNavigate({ from: "/all-calls" });
  const set = (next: AllCallSearch): void => void navigate({ search: next, replace: true });
  const choose = (accountId: string | undefined): void =>
    // A key belongs to one account.
    set(defined({ ...search, key: undefined, account: accountId }));
  return (
    <CallLog
      title={text.title}
      hint={account === undefined ? text.hint : text.hintOne}
      accountId={account ?? ""}
      search={search}
      onSearch={(next) => set({ ...next, ...defined({ account }) })}
      accountFilter={<AccountFilter accountId={account} onChoose={choose} />}
    />
  );
}
