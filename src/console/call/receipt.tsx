/** A receipt: every line as quantity × price, so that anybody can compute it again. */
import type { Receipt } from "../../../gen/uas/billing/v1/receipt_pb.ts";
import { useText } from "../language.tsx";
import { nanosOf, priceText } from "../money.ts";
import { Amount } from "../ui/show.tsx";

/** The receipt of a call. */
export function ReceiptView({ receipt }: { receipt: Receipt }) {
  const { calls: text } = useText();
  const { lines, subtotal, discount, amount, shortfall, entries, tierAbove, call } = receipt;
  if (!receipt.charged) return <p className="text-muted">{text.notCharged}</p>;
  const hasDiscount = Number(discount) !== 0;
  const charge = entries[0];
  const latest = entries.at(-1);
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
      <dl className="flex flex-col gap-1.5 border-t border-line px-4 py-3 text-xs text-muted">
        {tierAbove !== undefined && <Note name={text.tier(tierAbove)} />}
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
    </div>
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
