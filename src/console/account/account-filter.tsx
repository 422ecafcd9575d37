/** Narrows a list of all accounts to one; for operators. */
import { X } from "lucide-react";
import { useText } from "../language.tsx";
import { Button } from "../ui/button.tsx";
import { FilterField } from "../ui/filter-field.tsx";
import { useAccountNames } from "./use-account-names.ts";

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
