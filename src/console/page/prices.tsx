/** Models and prices as they are configured, for operators. The file is the truth: there is nothing to change here. */
import { useQuery } from "@connectrpc/connect-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { Boxes, CircleCheck, TriangleAlert } from "lucide-react";
import { useState } from "react";
import type { ModelPrices } from "../../../gen/uas/billing/v1/price_pb.ts";
import type { ConfiguredModel } from "../../../gen/uas/operator/v1/operator_pb.ts";
import { OperatorService } from "../../../gen/uas/operator/v1/operator_service_pb.ts";
import { useText } from "../language.tsx";
import { usePrices } from "../models.ts";
import { Card, Empty, PageHead, Skeleton } from "../ui/card.tsx";
import { TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { Table } from "../ui/table.tsx";
import { ConfiguredSheet } from "../vendor/configured-sheet.tsx";
import { configuredColumns } from "../vendor/configured-columns.tsx";

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
      <ConfiguredSheet
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
