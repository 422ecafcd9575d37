/** One configured model in detail: its routes, prices and vendor costs. */
import { type ModelPrices, PriceState } from "../../../gen/uas/billing/v1/price_pb.ts";
import type { ConfiguredModel } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { useText } from "../common/language.tsx";
import { limitRows, PriceHistory, PriceLines } from "../models/prices.tsx";
import { Facts } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";

/** The details of a configured model; open while there is one. */
export function ConfiguredModelSheet({
  model,
  prices,
  onClose,
}: {
  model: ConfiguredModel | undefined;
  prices: ModelPrices | undefined;
  onClose: () => void;
}) {
  return (
    <Sheet
      isOpen={model !== undefined}
      onClose={onClose}
      title={model && (model.name || model.modelKey)}
    >
      {model !== undefined && (
        <div className="flex flex-col gap-7">
          <About model={model} />
          <Routes model={model} prices={prices} />
          <PriceHistory hasIds versions={prices?.versions ?? []} />
        </div>
      )}
    </Sheet>
  );
}

function About({ model }: { model: ConfiguredModel }) {
  const texts = useText();
  const { prices: text, models } = texts;
  const { modelKey, type, line } = model;
  return (
    <Facts
      rows={[
        [models.id, <Id key="id" isWhole value={modelKey} />],
        [text.type, type],
        ...limitRows(model, texts),
        ...(line === 0 ? [] : [[text.line, String(line)] as const]),
      ]}
    />
  );
}

function Routes({
  model: { routes },
  prices,
}: {
  model: ConfiguredModel;
  prices: ModelPrices | undefined;
}) {
  const { prices: text } = useText();
  return (
    <section>
      <h3 className="mb-3 font-semibold">{text.routes}</h3>
      <ol className="flex flex-col gap-3">
        {routes.map(({ vendor, model }, index) => {
          const cost = prices?.costs.find((each) => each.vendor === vendor && each.model === model);
          const current = cost?.versions.find(({ state }) => state === PriceState.CURRENT);
          return (
            <li
              key={`${vendor} ${model}`}
              className="rounded-xl border border-line px-4 py-3 text-[0.8125rem]"
            >
              <p className="font-medium">
                {index + 1}. {vendor}{" "}
                <span className="font-mono text-xs font-normal text-muted">{model}</span>
              </p>
              <p className="mt-2 text-xs text-muted">{text.cost}</p>
              {current === undefined ? (
                <p className="text-muted">{text.noCost}</p>
              ) : (
                <PriceLines price={current.price} />
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
