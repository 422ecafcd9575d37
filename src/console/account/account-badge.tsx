/** Whether an account may make calls. */
import { type Account, AccountState } from "../../../gen/uas/account/v1/account_pb.ts";
import { useText } from "../language.tsx";
import { Badge } from "../ui/badge.tsx";

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
