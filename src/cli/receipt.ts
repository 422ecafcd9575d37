/** The receipt of a call in the words of the command line. */
import { LedgerKindSchema } from "../../gen/uas/billing/v1/billing_pb.ts";
import {
  HoldEventKindSchema,
  PriceUnitSchema,
  type Receipt,
} from "../../gen/uas/billing/v1/receipt_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { cell, facts, table } from "./output.ts";
import { perText, priceJson } from "./price-json.ts";
import { enumWord, orNull, timeText, usdText } from "./values.ts";

/** The receipt as JSON: all amounts in USD, those of lines exact. */
export type ReceiptJson = ReturnType<typeof receiptJson>;

/** Writes a receipt as JSON. */
export function receiptJson(receipt: Receipt) {
  return {
    charged: receipt.charged,
    lines: receipt.lines.map(({ unit, quantity, price, per, amount }) => ({
      unit: enumWord(PriceUnitSchema, unit),
      quantity,
      price,
      per,
      amount,
    })),
    subtotal: receipt.subtotal,
    discountBp: receipt.call?.discountBp ?? 0,
    discount: receipt.discount,
    amount: usdText(receipt.amount),
    recomputed: moneyText(receipt.recomputed),
    shortfall: usdText(receipt.shortfall),
    priceVersion: orNull(receipt.call?.priceVersion ?? ""),
    price: receipt.price === undefined ? null : priceJson(receipt.price),
    tierAbove: receipt.tierAbove === 0 ? null : receipt.tierAbove,
    holds: receipt.holds.map(({ kind, held, time }) => ({
      event: enumWord(HoldEventKindSchema, kind),
      held: usdText(held),
      time: timeText(time),
    })),
    entries: receipt.entries.map((entry) => ({
      transactionId: entry.transactionId,
      kind: enumWord(LedgerKindSchema, entry.kind),
      amount: usdText(entry.amount),
      balanceBefore: moneyText(entry.balanceBefore),
      balanceAfter: moneyText(entry.balanceAfter),
      time: timeText(entry.createTime),
      reference: orNull(entry.reference),
    })),
    vendorCost: moneyText(receipt.vendorCost),
  };
}

function moneyText(money: Money | undefined): string | null {
  return money === undefined ? null : usdText(money);
}

/** Writes a receipt for people: what was charged, what was held, what moved. */
export function receiptText(json: ReceiptJson): string {
  const { amount, recomputed, shortfall, priceVersion, tierAbove, vendorCost } = json;
  const sums = facts({
    amount,
    recomputed,
    priceVersion,
    ...(tierAbove !== null && { tierAbove }),
    ...(shortfall !== "0" && { shortfall }),
    ...(vendorCost !== null && { vendorCost }),
  });
  return [sums, ...linesText(json), ...holdsText(json), ...entriesText(json)].join("\n\n");
}

function linesText({ lines, subtotal, discountBp, discount, amount }: ReceiptJson): string[] {
  if (lines.length === 0) return [];
  const rows = lines.map((line) => [
    line.unit ?? "",
    line.quantity,
    `${line.price} per ${perText(line.unit ?? "")}`,
    line.amount,
  ]);
  const percent = `discount ${discountBp / 100} %`;
  const sums = [
    ["subtotal", "", "", subtotal],
    ...(discountBp === 0 ? [] : [[percent, "", "", `-${discount}`]]),
    ["amount", "", "", amount],
  ];
  return [table(["LINE", "QUANTITY", "PRICE", "USD"], [...rows, ...sums])];
}

function holdsText({ holds }: ReceiptJson): string[] {
  if (holds.length === 0) return [];
  const rows = holds.map(({ time, event, held }) => [time, event, held].map(cell));
  return [table(["TIME", "HOLD", "HELD"], rows)];
}

function entriesText({ entries }: ReceiptJson): string[] {
  if (entries.length === 0) return [];
  const rows = entries.map((entry) =>
    [
      entry.time,
      entry.kind,
      entry.amount,
      entry.balanceBefore,
      entry.balanceAfter,
      entry.reference,
    ].map(cell),
  );
  return [table(["TIME", "MOVED", "USD", "BEFORE", "AFTER", "REFERENCE"], rows)];
}
