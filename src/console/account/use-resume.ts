/** Lets an account make calls again. */
import { useMutation } from "@connectrpc/connect-query";
import { AccountService } from "../../../gen/uas/account/v1/account_service_pb.ts";
import { useText } from "../language.tsx";
import { useDone } from "../settings/use-done.ts";
import { useToast } from "../ui/toast.tsx";

/** Resumes an account, and says so. */
export function useResume() {
  const {
    operator: { accounts: text },
  } = useText();
  const done = useDone();
  const toast = useToast();
  return useMutation(AccountService.method.resumeAccount, {
    onSuccess: ({ account }) => done(text.didResume(account?.name ?? "")),
    onError: (error) => toast({ title: error.rawMessage }),
  });
}
