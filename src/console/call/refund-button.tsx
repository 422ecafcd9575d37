/** Gives a charge back; for operators. Its reference stays the same while the dialog is open, so it is booked once. */
import { useMutation } from "@connectrpc/connect-query";
import { Undo2 } from "lucide-react";
import { useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { newReference } from "../account/new-reference.ts";
import { useText } from "../language.tsx";
import { exactUsd, moneyOf, nanosOf, parseUsd, usd } from "../money.ts";
import { useSession } from "../session.tsx";
import { useDone } from "../settings/use-done.ts";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";

/** The button; only for operators, and only where something was charged. */
export function RefundButton({ call }: { call: CallRecord }) {
  const {
    operator: { refund: text },
  } = useText();
  const { isOperator } = useSession();
  const [isOpen, setOpen] = useState(false);
  if (!isOperator || nanosOf(call.cost) === 0n) return null;
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Undo2 aria-hidden="true" />
        {text.open}
      </Button>
      {isOpen && <RefundDialog call={call} onClose={() => setOpen(false)} />}
    </>
  );
}

function RefundDialog({ call, onClose }: { call: CallRecord; onClose: () => void }) {
  const {
    operator: { refund: text, accounts },
  } = useText();
  const { callId, accountId, cost } = call;
  const [amount, setAmount] = useState(() => exactUsd(nanosOf(cost)).replace(" USD", ""));
  const [reference, setReference] = useState(newReference);
  const nanos = parseUsd(amount) ?? 0n;
  const done = useDone();
  const refund = useMutation(BillingService.method.refund, {
    onSuccess: async ({ replayed }) => {
      onClose();
      await done(replayed ? accounts.replayed : text.done(usd(nanos)));
    },
  });
  const submit = (): void => {
    if (nanos > 0n) refund.mutate({ accountId, callId, amount: moneyOf(nanos), reference });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.title}
      description={text.text}
      onSubmit={submit}
      submit={accounts.book}
      isBusy={refund.isPending}
      error={refund.error}
    >
      <TextField
        label={accounts.amount}
        error={nanos > 0n ? undefined : accounts.amountWrong}
        value={amount}
        inputMode="decimal"
        required
        autoFocus
        onChange={(event) => setAmount(event.target.value)}
      />
      <TextField
        label={accounts.reference}
        hint={accounts.referenceHint}
        value={reference}
        maxLength={200}
        required
        className="font-mono text-xs"
        onChange={(event) => setReference(event.target.value)}
      />
    </FormDialog>
  );
}
