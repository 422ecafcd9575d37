/** The keys of the account, as other pages need them. */
import { useQuery } from "@connectrpc/connect-query";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useAccountId } from "../common/session.tsx";

/** The most keys that are asked for at once. */
const keysMax = 1_000;

/** The keys of an account, deleted ones too. @param accountOf default: the own one; empty: of none */
export function useKeys(accountOf?: string) {
  const own = useAccountId();
  const accountId = accountOf ?? own;
  return useQuery(
    KeyService.method.listKeys,
    { accountId, pageSize: keysMax },
    { enabled: accountId !== "" },
  );
}

/** What the keys of an account are called, by their id. @param accountOf as for {@link useKeys} */
export function useKeyNames(accountOf?: string): ReadonlyMap<string, string> {
  const { data } = useKeys(accountOf);
  return new Map((data?.keys ?? []).map(({ keyId, name, masked }) => [keyId, name || masked]));
}
