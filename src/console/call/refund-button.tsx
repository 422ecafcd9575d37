/** Gives a charge back; for operators. Its reference stays the same while the dialog is open, so it is booked once. */
import { useMutation } from "@connectrpc/connect-query";
import { Undo2 } from "lucide-react";
import { type FormEvent, useId, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { newReference } from "../account/new-reference.ts";
import { useText } from "../language.tsx";
import { exactUsd, moneyOf, nanosOf, parseUsd, usd } from "../money.ts";
import { useSession } from "../session.tsx";
import { useDone } from "../settings/use-done.ts";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";

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
    common,
  } = useText();
  const { callId, accountId, cost } = call;
  const formId = useId();
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
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (nanos > 0n) refund.mutate({ accountId, callId, amount: moneyOf(nanos), reference });
  };
  return (
    <Dialog
      isOpen
      onClose={onClose}
      title={text.title}
      description={text.text}
      footer={
        <>
          <Button onClick={onClose}>{common.cancel}</Button>
          <Button type="submit" form={formId} tone="primary" isBusy={refund.isPending}>
            {accounts.book}
          </Button>
        </>
      }
    >
      <form id={formId} onSubmit={submit} className="flex flex-col gap-5">
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
        <ErrorNote error={refund.error} />
      </form>
    </Dialog>
  );
}
