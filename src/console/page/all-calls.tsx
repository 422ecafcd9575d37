/** The calls of every account, for operators. */
import { useNavigate, useSearch } from "@tanstack/react-router";
import { X } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useAccountNames } from "../account/use-account-names.ts";
import { useText } from "../language.tsx";
import type { AllCallSearch } from "../operator/search.ts";
import { defined } from "../search.ts";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/field.tsx";
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
      accountFilter={
        account === undefined ? (
          <AccountField onChoose={choose} />
        ) : (
          <ChosenAccount accountId={account} onClear={() => choose(undefined)} />
        )
      }
    />
  );
}

function AccountField({ onChoose }: { onChoose: (accountId: string) => void }) {
  const {
    operator: { allCalls: text },
  } = useText();
  const [value, setValue] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (value.trim() !== "") onChoose(value.trim());
  };
  return (
    <form onSubmit={submit} className="sm:w-44">
      <TextField
        label={text.account}
        isLabelHidden
        type="search"
        placeholder={text.account}
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onBlur={submit}
        className="h-8 font-mono text-xs"
      />
    </form>
  );
}

function ChosenAccount({ accountId, onClear }: { accountId: string; onClear: () => void }) {
  const { common } = useText();
  const names = useAccountNames(true);
  return (
    <Button onClick={onClear} className="min-w-0">
      <span className="sr-only">{common.account}: </span>
      <span className="max-w-40 truncate">{names.get(accountId) ?? accountId.slice(-12)}</span>
      <X aria-hidden="true" />
    </Button>
  );
}
