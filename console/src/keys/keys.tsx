/** The API keys of an account, as lists and filters of other pages need them. */
import { useQuery } from "@connectrpc/connect-query";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import { FilterSelect } from "../ui/filter-bar.tsx";

/** The most keys that are fetched. */
const keysMax = 1_000;

/**
 * The keys of an account, deleted ones too.
 *
 * @param accountOf the user's account by default; empty for no keys
 */
export function useKeys(accountOf?: string) {
  const own = useAccountId();
  const accountId = accountOf ?? own;
  return useQuery(
    KeyService.method.listKeys,
    { accountId, pageSize: keysMax },
    { enabled: accountId !== "" },
  );
}

/** The names of the keys of an account by their id. @param accountOf as for {@link useKeys} */
export function useKeyNames(accountOf?: string): ReadonlyMap<string, string> {
  const { data } = useKeys(accountOf);
  return new Map((data?.keys ?? []).map(({ keyId, name, masked }) => [keyId, name || masked]));
}

/** A choice of one key of an account, or of all. */
export function KeyFilter({
  accountId,
  value,
  onChoose,
  ...shown
}: {
  /** The user's account by default. */
  accountId?: string;
  value: string | undefined;
  onChoose: (keyId: string | undefined) => void;
  isLabelHidden?: boolean;
  className?: string;
}) {
  const { common } = useText();
  const names = useKeyNames(accountId);
  return (
    <FilterSelect
      {...shown}
      label={common.key}
      any={common.anyKey}
      value={value}
      choices={[...names].map(([keyId, label]) => ({ value: keyId, label }))}
      onChoose={onChoose}
    />
  );
}
