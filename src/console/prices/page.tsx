/** Configured models and prices, for operators. Read only: they are changed in uas.yaml. */
import { useQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Boxes, CircleCheck, TriangleAlert } from "lucide-react";
import { useState } from "react";
import type { ModelPrices } from "../../../gen/uas/billing/v1/price_pb.ts";
import type { ConfiguredModel } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { currentPrice, priceLines, usePrices } from "../models/prices.tsx";
import { Card, Empty, PageHead, Skeleton } from "../ui/card.tsx";
import { TextField } from "../ui/field.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { type Column, RowButton, Table } from "../ui/table.tsx";
import { ConfiguredModelSheet } from "./model-sheet.tsx";

/** The most models that are asked for. */
const modelsMax = 1_000;

/** The page. */
export function PricesPage() {
  const {
    operator: { prices: text },
  } = useText();
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
  const {
    operator: { prices: text },
  } = useText();
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
  const { prices: text } = texts.operator;
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const found = models?.filter(({ modelKey, name, routes }) =>
    [modelKey, name, ...routes.flatMap(({ vendor, model }) => [vendor, model])].some((each) =>
      each.toLowerCase().includes(wanted),
    ),
  );
  return (
    <Card>
      <div role="search" className="border-b border-line p-4">
        <div className="max-w-64">
          <TextField
            label={text.search}
            isLabelHidden
            type="search"
            placeholder={text.search}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            className="h-8"
          />
        </div>
      </div>
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

/** The columns. */
function configuredColumns({
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
