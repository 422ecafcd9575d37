/** Configured models and prices, for operators. The page Configuration changes them. */
import { useQuery } from "@connectrpc/connect-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Boxes, CircleCheck, SlidersHorizontal, TriangleAlert } from "lucide-react";
import { useState } from "react";
import { type ModelPrices, PriceState } from "../../../gen/uas/billing/v1/price_pb.ts";
import type { ConfiguredModel, ConfiguredRoute } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import {
  currentPrice,
  limitRows,
  PriceCell,
  PriceHistory,
  PriceLines,
  usePrices,
} from "../models/prices.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Card, Empty, Facts, PageHead, Skeleton } from "../ui/card.tsx";
import { Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { FilterBar, isFound, SearchField } from "../ui/filter-bar.tsx";
import { Badge, ErrorNote, Share } from "../ui/show.tsx";
import { type Column, RowButton, Table } from "../ui/table.tsx";

/** The most models that are fetched. */
const modelsMax = 1_000;

/** `/prices`, for operators. */
export function PricesPage() {
  const { prices: text } = useText();
  const { data, error, refetch } = useQuery(OperatorService.method.listConfiguredModels, {
    pageSize: modelsMax,
  });
  const prices = usePrices();
  const { model: openKey } = useSearch({ from: "/inside/operator/prices" });
  const navigate = useNavigate({ from: "/prices" });
  const open = (model?: string): void =>
    void navigate({ search: model === undefined ? {} : { model }, replace: true });
  const priceOf = new Map((prices.data ?? []).map((each) => [each.modelKey, each]));
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      <div className="flex flex-col gap-6">
        {error !== null && <ErrorNote error={error} onRetry={() => void refetch()} />}
        {error === null && (
          <>
            {data === undefined ? (
              <div aria-busy="true">
                <Skeleton className="h-16" />
              </div>
            ) : (
              <Validation source={data.source} warnings={data.warnings} />
            )}
            <Models
              models={data?.models}
              priceOf={priceOf}
              openKey={openKey}
              onOpen={({ modelKey }) => open(modelKey)}
            />
          </>
        )}
      </div>
      <ConfiguredModelSheet
        model={data?.models.find(({ modelKey }) => modelKey === openKey)}
        prices={openKey === undefined ? undefined : priceOf.get(openKey)}
        onClose={() => open()}
      />
    </>
  );
}

function Validation({ source, warnings }: { source: string; warnings: readonly string[] }) {
  const { prices: text } = useText();
  const isFine = warnings.length === 0;
  const Icon = isFine ? CircleCheck : TriangleAlert;
  return (
    <Card className="flex items-start gap-3 px-5 py-4">
      <Icon
        aria-hidden="true"
        className={`mt-0.5 size-5 shrink-0 ${isFine ? "text-good" : "text-warn"}`}
      />
      <div className="min-w-0 flex-1">
        <p className="font-medium">{isFine ? text.fine : text.warnings(warnings.length)}</p>
        <p className="mt-0.5 text-[0.8125rem] text-muted">
          {text.source}{" "}
          <span className="font-mono text-xs break-all">
            {source === "built-in demo" ? text.builtIn : source}
          </span>
          {isFine && <> · {text.fineHint}</>}
        </p>
        {!isFine && (
          <ul className="mt-2 flex flex-col gap-1 font-mono text-xs">
            {warnings.map((warning) => (
              <li key={warning} className="break-words">
                {warning}
              </li>
            ))}
          </ul>
        )}
      </div>
    </Card>
  );
}

function Models({
  models,
  priceOf,
  openKey,
  onOpen,
}: {
  models: readonly ConfiguredModel[] | undefined;
  priceOf: ReadonlyMap<string, ModelPrices>;
  openKey: string | undefined;
  onOpen: (model: ConfiguredModel) => void;
}) {
  const texts = useText();
  const { prices: text } = texts;
  const [search, setSearch] = useState("");
  const found = models?.filter(({ modelKey, name, routes }) =>
    isFound(search, modelKey, name, ...routes.flatMap(({ vendor, model }) => [vendor, model])),
  );
  return (
    <Card>
      <FilterBar label={text.title}>
        <SearchField label={text.search} value={search} onChange={setSearch} />
      </FilterBar>
      <Table
        label={text.title}
        columns={configuredColumns({ texts, priceOf, onOpen })}
        rows={found}
        keyOf={({ modelKey }) => modelKey}
        onOpen={onOpen}
        isOpen={({ modelKey }) => modelKey === openKey}
        empty={
          models?.length === 0 ? (
            <Empty icon={<Boxes />} title={text.empty} hint={text.emptyHint} />
          ) : (
            <Empty icon={<Boxes />} title={text.noMatch} />
          )
        }
      />
    </Card>
  );
}

function configuredColumns({
  texts,
  priceOf,
  onOpen,
}: {
  texts: Texts;
  priceOf: ReadonlyMap<string, ModelPrices>;
  onOpen: (model: ConfiguredModel) => void;
}): Column<ConfiguredModel>[] {
  const { prices: text } = texts;
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
      cell: ({ routes }) => <Routes routes={routes} />,
    },
    {
      id: "price",
      title: text.price,
      isNumber: true,
      cell: ({ modelKey }) => {
        const prices = priceOf.get(modelKey);
        return <PriceCell price={prices && currentPrice(prices)} />;
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

function Routes({ routes }: Pick<ConfiguredModel, "routes">) {
  return (
    <ul className="flex flex-col gap-0.5">
      {byPriority(routes).map(({ vendor, model }) => (
        <li key={`${vendor} ${model}`} className="max-w-56 truncate">
          {vendor} <span className="font-mono text-xs text-muted">{model}</span>
        </li>
      ))}
    </ul>
  );
}

/** The details of a configured model; open while there is one. */
function ConfiguredModelSheet({
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
          <EditLink name={model.modelKey} />
          <RoutesWithCosts model={model} prices={prices} />
          <PriceHistory hasIds versions={prices?.versions ?? []} />
        </div>
      )}
    </Sheet>
  );
}

/** A link to the form of a model. */
function EditLink({ name }: { name: string }) {
  const { layout } = useText();
  return (
    <Link
      to="/configuration"
      search={{ tab: "models", entry: name }}
      className={clsx(buttonClass(), "self-start")}
    >
      <SlidersHorizontal aria-hidden="true" />
      {layout.configuration}
    </Link>
  );
}

function About({ model }: { model: ConfiguredModel }) {
  const texts = useText();
  const { prices: text, models } = texts;
  const { modelKey, type, line, fallbackModels } = model;
  return (
    <Facts
      rows={[
        [models.id, <Id key="id" isWhole value={modelKey} />],
        [text.type, type],
        ...limitRows(model, texts),
        ...(fallbackModels.length === 0
          ? []
          : [
              [
                text.fallbacks,
                <span key="fallbacks" className="font-mono text-xs">
                  {fallbackModels.join(", ")}
                </span>,
              ] as const,
            ]),
        ...(line === 0 ? [] : [[text.line, String(line)] as const]),
      ]}
    />
  );
}

function RoutesWithCosts({
  model: { routes },
  prices,
}: {
  model: ConfiguredModel;
  prices: ModelPrices | undefined;
}) {
  const { prices: text } = useText();
  return (
    <section>
      <h3 className="font-semibold">{text.routes}</h3>
      <p className="mt-0.5 mb-3 text-xs text-muted">{text.routesHint}</p>
      <ol className="flex flex-col gap-3">
        {byPriority(routes).map((route) => {
          const { vendor, model, maxContextTokens } = route;
          const cost = prices?.costs.find((each) => each.vendor === vendor && each.model === model);
          const current = cost?.versions.find(({ state }) => state === PriceState.CURRENT);
          return (
            <li
              key={`${vendor} ${model}`}
              className="rounded-xl border border-line px-4 py-3 text-[0.8125rem]"
            >
              <p className="font-medium">
                {vendor} <span className="font-mono text-xs font-normal text-muted">{model}</span>
              </p>
              <p className="mt-0.5 text-xs">
                <Share target={route} all={routes} />
                {maxContextTokens > 0 && (
                  <> · {text.maxContext(maxContextTokens.toLocaleString())}</>
                )}
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

/** In the order in which they are used; routes of equal priority in the order of the file. */
function byPriority(routes: readonly ConfiguredRoute[]): readonly ConfiguredRoute[] {
  return routes.toSorted((a, b) => a.priority - b.priority);
}
