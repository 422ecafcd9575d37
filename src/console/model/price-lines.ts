/** Prices as people compare them: money for a million tokens, for a picture, for a second. Never a factor. */
import type { Price, PriceTier } from "../../../gen/uas/type/v1/price_pb.ts";
import type { Texts } from "../language.tsx";
import { priceText } from "../money.ts";

/** One price. */
export interface PriceLine {
  readonly name: string;
  readonly price: string;
  readonly per: string;
}

type TokenPrice = Pick<PriceTier, "input" | "cachedInput" | "cacheWrite" | "output" | "reasoning">;

/** What is charged, by unit. */
export function priceLines(
  price: (TokenPrice & Partial<Pick<Price, "image" | "second" | "request">>) | undefined,
  { models: text, calls }: Texts,
): readonly PriceLine[] {
  if (price === undefined) return [];
  const lines: readonly (readonly [string, string | undefined, string])[] = [
    [text.input, price.input, text.perMillion],
    [text.cached, price.cachedInput, text.perMillion],
    [
      calls.units[3] ?? "",
      price.cacheWrite === price.input ? "" : price.cacheWrite,
      text.perMillion,
    ],
    [text.output, price.output, text.perMillion],
    [
      calls.units[5] ?? "",
      price.reasoning === price.output ? "" : price.reasoning,
      text.perMillion,
    ],
    ["", price.image, text.perImage],
    ["", price.second, text.perSecond],
    ["", price.request, text.perRequest],
  ];
  return lines.flatMap(([name, value = "", per]) =>
    value === "" ? [] : [{ name, price: priceText(value), per }],
  );
}
