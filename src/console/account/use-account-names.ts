/** What accounts are called, for lists of what belongs to many. */
import { useQuery } from "@connectrpc/connect-query";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";

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
