/** The receipt of a call, every line as quantity × price, and its refund. */
import { useMutation } from "@connectrpc/connect-query";
import { Undo2 } from "lucide-react";
import { useState } from "react";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import type { Receipt } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { newReference, ReferenceField } from "../account/balance-dialog.tsx";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd, priceText, usd } from "../common/money.ts";
import { useSession } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { Amount } from "../ui/show.tsx";

/** The receipt of a call: its lines, the sum, and the balance before and after. */
export function ReceiptView({ receipt }: { receipt: Receipt }) {
  const { calls: text } = useText();
  const { lines, subtotal, discount, amount } = receipt;
  if (!receipt.charged) return <p className="text-muted">{text.notCharged}</p>;
  const hasDiscount = Number(discount) !== 0;
  return (
    <div className="rounded-xl border border-line">
      <table className="w-full text-[0.8125rem]">
        <tbody>
          {lines.map(({ unit, quantity, price, per, amount: lineAmount }) => (
            <tr key={unit} className="border-b border-line">
              <th scope="row" className="px-4 py-2 text-left font-normal">
                {text.units[unit]}
                <span className="block text-xs text-muted">
                  {Number(quantity).toLocaleString()} × {text.per(priceText(price), per)}
                </span>
              </th>
              <td className="px-4 py-2 text-right align-top">${lineAmount}</td>
            </tr>
          ))}
          {hasDiscount && (
            <>
              <Sum name={text.subtotal} value={`$${subtotal}`} />
              <Sum name={text.discount} value={`−$${discount}`} />
            </>
          )}
          <tr className="font-semibold">
            <th scope="row" className="px-4 py-2.5 text-left">
              {text.charged}
            </th>
            <td className="px-4 py-2.5 text-right">
              <Amount money={amount} />
            </td>
          </tr>
        </tbody>
      </table>
      <Notes receipt={receipt} />
    </div>
  );
}

/** The applied price, and the balance before and after. */
function Notes({ receipt: { shortfall, entries, tierAbove, price, call } }: { receipt: Receipt }) {
  const { calls: text } = useText();
  const charge = entries[0];
  const latest = entries.at(-1);
  return (
    <dl className="flex flex-col gap-1.5 border-t border-line px-4 py-3 text-xs text-muted">
      {tierAbove !== undefined && <Note name={text.tier(tierAbove)} />}
      {price !== undefined && price.serviceTier !== "" && (
        <Note name={text.serviceTier(price.serviceTier)} />
      )}
      <Note name={text.priceVersion}>
        <span className="font-mono">{call?.priceVersion}</span>
      </Note>
      {charge?.balanceBefore !== undefined && (
        <Note name={text.balanceBefore}>
          <Amount isExact money={charge.balanceBefore} />
        </Note>
      )}
      {latest?.balanceAfter !== undefined && (
        <Note name={text.balanceAfter}>
          <Amount isExact money={latest.balanceAfter} />
        </Note>
      )}
      {nanosOf(shortfall) > 0n && (
        <Note name={text.shortfall}>
          <Amount money={shortfall} />
        </Note>
      )}
    </dl>
  );
}

function Sum({ name, value }: { name: string; value: string }) {
  return (
    <tr className="border-b border-line text-muted">
      <th scope="row" className="px-4 py-2 text-left font-normal">
        {name}
      </th>
      <td className="px-4 py-2 text-right">{value}</td>
    </tr>
  );
}

function Note({ name, children }: { name: string; children?: React.ReactNode }) {
  return (
    <div className="flex justify-between gap-4">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Refunds a charge: for operators only, and only if the call was charged. */
export function RefundButton({ call }: { call: CallRecord }) {
  const { refund: text } = useText();
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
  const { refund: text, accounts } = useText();
  const { callId, accountId, cost } = call;
  const [amount, setAmount] = useState(() => decimalUsd(nanosOf(cost)));
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
      submit={text.submit}
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
      <ReferenceField value={reference} onChange={setReference} />
    </FormDialog>
  );
}
