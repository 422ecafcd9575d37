/** The limits of a model: one list for customers and operators. */
import { CancelBilling, type Model } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { Texts } from "../language.tsx";
import { periodText } from "../time.ts";
import { millis } from "../duration.ts";

/** A limit and its name. */
export type LimitRow = readonly [name: string, value: string];

/** Those that a model has. */
export function limitRows(
  {
    maxOutputTokens,
    deadline,
    cancelBilling,
  }: Pick<Model, "maxOutputTokens" | "deadline" | "cancelBilling">,
  { models: text }: Texts,
): LimitRow[] {
  const rows: LimitRow[] = [];
  if (maxOutputTokens > 0)
    rows.push([text.maxOutput, text.tokens(maxOutputTokens.toLocaleString())]);
  rows.push([text.deadline, periodText(millis(deadline))]);
  const isBilled = cancelBilling === CancelBilling.UPSTREAM;
  rows.push([text.cancelled, isBilled ? text.cancelBilled : text.cancelFree]);
  return rows;
}
