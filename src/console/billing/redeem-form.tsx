/** Redeeming a code that is worth money. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { RedeemService } from "../../../gen/uas/billing/v1/redeem_service_pb.ts";
import { useText } from "../language.tsx";
import { nanosOf, usd } from "../money.ts";
import { useAccountId } from "../session.tsx";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useToast } from "../ui/toast.tsx";

/** The form. A code counts once; sending it twice changes nothing. */
export function RedeemForm() {
  const { billing: text } = useText();
  const accountId = useAccountId();
  const toast = useToast();
  const queries = useQueryClient();
  const [code, setCode] = useState("");
  const redeem = useMutation(RedeemService.method.redeem, {
    onSuccess: async ({ amount, replayed }) => {
      setCode("");
      const worth = usd(nanosOf(amount));
      toast({ title: replayed ? text.redeemedBefore(worth) : text.redeemed(worth) });
      await queries.invalidateQueries();
    },
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    redeem.mutate({ accountId, code });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3">
      <div className="flex flex-wrap items-end gap-3">
        <div className="min-w-40 flex-1">
          <TextField
            label={text.redeemCode}
            required
            spellCheck={false}
            autoCapitalize="characters"
            value={code}
            onChange={(event) => setCode(event.target.value)}
            className="font-mono"
          />
        </div>
        <Button type="submit" size="medium" isBusy={redeem.isPending} disabled={code.trim() === ""}>
          {text.redeem}
        </Button>
      </div>
      <ErrorNote error={redeem.error} />
    </form>
  );
}
