/** The calls of every account, for operators. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { AccountFilter } from "../account/account-filter.tsx";
import { useText } from "../language.tsx";
import type { AllCallSearch } from "../operator/search.ts";
import { defined } from "../search.ts";
import { CallLog } from "./calls.tsx";

/** The page. */
export function AllCallsPage() {
  const {
    operator: { allCalls: text },
  } = useText();
  const { account, ...search } = useSearch({ from: "/inside/operator/all-calls" });
  const navigate = useNavigate({ from: "/all-calls" });
  const set = (next: AllCallSearch): void => void navigate({ search: next, replace: true });
  const choose = (accountId: string | undefined): void =>
    // A key is of one account.
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
