/** The columns of the list of configured models. */
import type { ModelPrices } from "../../../gen/uas/billing/v1/price_pb.ts";
import type { ConfiguredModel } from "../../../gen/uas/operator/v1/operator_pb.ts";
import type { Texts } from "../language.tsx";
import { priceLines } from "../model/price-lines.ts";
import { currentPrice } from "../models.ts";
import { Badge } from "../ui/badge.tsx";
import { type Column, RowButton } from "../ui/table.tsx";

/** The columns. */
export function configuredColumns({
  texts,
  priceOf,
  onOpen,
}: {
  texts: Texts;
  priceOf: ReadonlyMap<string, ModelPrices>;
  onOpen: (model: ConfiguredModel) => void;
}): Column<ConfiguredModel>[] {
  const { prices: text } = texts.operator;
  return [
    {
      id: "model",
      title: text.model,
      cell: (model) => (
        <>
          <RowButton onOpen={() => onOpen(model)}>{model.name || model.modelKey}</RowButton>
          <span className="block max-w-40 truncate font-mono text-xs text-muted sm:max-w-56">
            {model.modelKey}
          </span>
        </>
      ),
    },
    {
      id: "type",
      title: text.type,
      from: "md",
      cell: ({ type }) => (
        <Badge isPlain tone={type === "TEXT" ? "info" : "neutral"}>
          {type}
        </Badge>
      ),
    },
    {
      id: "route",
      title: text.route,
      from: "sm",
      cell: ({ routes }) => (
        <ul className="flex flex-col gap-0.5">
          {routes.map(({ vendor, model }) => (
            <li key={`${vendor} ${model}`} className="max-w-56 truncate">
              {vendor} <span className="font-mono text-xs text-muted">{model}</span>
            </li>
          ))}
        </ul>
      ),
    },
    {
      id: "price",
      title: text.price,
      isNumber: true,
      cell: ({ modelKey }) => {
        const prices = priceOf.get(modelKey);
        return (
          <ul className="flex flex-wrap justify-end gap-x-5 gap-y-0.5">
            {priceLines(prices && currentPrice(prices), texts).map(({ name, price, per }) => (
              <li key={name + per} className="whitespace-nowrap">
                <span className="text-muted">{name}</span> {price}{" "}
                <span className="text-xs text-muted">{per}</span>
              </li>
            ))}
          </ul>
        );
      },
    },
    {
      id: "line",
      title: text.line,
      isNumber: true,
      from: "lg",
      cell: ({ line }) => (line === 0 ? <span className="text-muted">—</span> : line),
    },
  ];
}
