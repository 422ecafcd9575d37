/** The keys of the account, as other pages need them. */
import { useQuery } from "@connectrpc/connect-query";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useAccountId } from "../session.tsx";

/** The most keys that are asked for at once. */
const keysMax = 1_000;

/** The keys of the account, deleted ones too. */
export function useKeys() {
  const accountId = useAccountId();
  return useQuery(KeyService.method.listKeys, { accountId, pageSize: keysMax });
}

/** What the keys are called, by their id. */
export function useKeyNames(): ReadonlyMap<string, string> {
  const { data } = useKeys();
  return new Map((data?.keys ?? []).map(({ keyId, name, masked }) => [keyId, name || masked]));
}
