/** One configured model in detail: where its calls go, what they cost and what the vendors take. */
import {
  type ModelPrices,
  PriceState,
  type PriceVersion,
} from "../../../gen/uas/billing/v1/price_pb.ts";
import type { ConfiguredModel } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { useText } from "../common/language.tsx";
import { limitRows, priceLines } from "../models/prices.tsx";
import { Facts } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { Badge, Time } from "../ui/show.tsx";

/** The sheet; open while there is a model. */
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
          <Versions versions={prices?.versions ?? []} />
        </div>
      )}
    </Sheet>
  );
}

function About({ model }: { model: ConfiguredModel }) {
  const texts = useText();
  const {
    operator: { prices: text },
    models,
  } = texts;
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
  const {
    operator: { prices: text },
  } = useText();
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
                <Lines version={current} />
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}

function Versions({ versions }: { versions: readonly PriceVersion[] }) {
  const {
    operator: { prices: text },
    models,
  } = useText();
  return (
    <section>
      <h3 className="mb-3 font-semibold">{text.history}</h3>
      <ol className="flex flex-col gap-3">
        {versions.toReversed().map((version) => (
          <li
            key={`${version.version} ${version.state}`}
            className="rounded-xl border border-line px-4 py-3 text-[0.8125rem]"
          >
            <div className="mb-1.5 flex flex-wrap items-center justify-between gap-3">
              <span className="flex items-center gap-2">
                <Badge tone={version.state === PriceState.CURRENT ? "good" : "neutral"}>
                  {models.states[version.state]}
                </Badge>
                <span className="font-mono text-xs text-muted">{version.version}</span>
              </span>
              <span className="text-xs text-muted">
                {models.from} <Time time={version.fromTime ?? version.loadTime} />
              </span>
            </div>
            <Lines version={version} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function Lines({ version: { price } }: { version: PriceVersion }) {
  const texts = useText();
  return (
    <>
      {priceLines(price, texts).map(({ name, price: amount, per }) => (
        <p key={name + per}>
          <span className="text-muted">{name}</span> {amount}{" "}
          <span className="text-xs text-muted">{per}</span>
        </p>
      ))}
    </>
  );
}
