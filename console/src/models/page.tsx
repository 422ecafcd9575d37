/** Models: the callable models and their prices. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Boxes } from "lucide-react";
import { useState } from "react";
import { type Model, ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { FilterBar, FilterSelect, isFound, SearchField } from "../ui/filter-bar.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { type Column, RowButton, Table } from "../ui/table.tsx";
import { PriceCell, useModels } from "./prices.tsx";
import { ModelSheet } from "./model.tsx";

const types = [
  ModelType.TEXT,
  ModelType.IMAGE,
  ModelType.VIDEO,
  ModelType.AUDIO,
  ModelType.EMBEDDING,
  ModelType.RERANK,
  ModelType.MODERATION,
] as const;

/** `/models`. */
export function ModelsPage() {
  const { models: text, tasks } = useText();
  const { model: openKey } = useSearch({ from: "/inside/models" });
  const navigate = useNavigate({ from: "/models" });
  const { data, error, refetch } = useModels();
  const [search, setSearch] = useState("");
  const [type, setType] = useState<string>();
  const open = (model?: string): void =>
    void navigate({ search: model === undefined ? {} : { model }, replace: true });
  const found = data?.filter(
    (model) =>
      (type === undefined || model.type === Number(type)) &&
      isFound(search, model.name, model.modelKey),
  );
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      <Card>
        <FilterBar label={text.title}>
          <SearchField label={text.search} value={search} onChange={setSearch} />
          <FilterSelect
            label={text.type}
            any={text.anyType}
            value={type}
            choices={types.map((each) => ({ value: String(each), label: tasks.types[each] ?? "" }))}
            onChoose={setType}
          />
        </FilterBar>
        {error === null ? (
          <ModelTable
            rows={found}
            hasAny={(data?.length ?? 0) > 0}
            openKey={openKey}
            onOpen={({ modelKey }) => open(modelKey)}
          />
        ) : (
          <div className="p-5">
            <ErrorNote error={error} onRetry={() => void refetch()} />
          </div>
        )}
      </Card>
      <ModelSheet
        key={openKey}
        model={data?.find(({ modelKey }) => modelKey === openKey)}
        onClose={() => open()}
      />
    </>
  );
}

function ModelTable({
  rows,
  hasAny,
  openKey,
  onOpen,
}: {
  rows: readonly Model[] | undefined;
  hasAny: boolean;
  openKey: string | undefined;
  onOpen: (model: Model) => void;
}) {
  const texts = useText();
  const { models: text } = texts;
  return (
    <Table
      label={text.title}
      columns={modelColumns(texts, onOpen)}
      rows={rows}
      keyOf={({ modelKey }) => modelKey}
      onOpen={onOpen}
      isOpen={({ modelKey }) => modelKey === openKey}
      empty={
        hasAny ? (
          <Empty title={text.empty} hint={text.emptyHint} />
        ) : (
          <Empty icon={<Boxes />} title={text.none} hint={text.noneHint} />
        )
      }
    />
  );
}

function modelColumns(
  { models: text, tasks, common }: Texts,
  onOpen: (model: Model) => void,
): Column<Model>[] {
  return [
    {
      id: "name",
      title: text.title,
      cell: (model) => (
        <>
          <RowButton onOpen={() => onOpen(model)}>{model.name}</RowButton>
          <span className="block max-w-56 min-w-32 truncate font-mono text-xs text-muted">
            {model.modelKey}
          </span>
        </>
      ),
    },
    {
      id: "type",
      title: text.type,
      from: "sm",
      cell: ({ type }) => (
        <Badge isPlain tone={type === ModelType.TEXT ? "info" : "neutral"}>
          {tasks.types[type]}
        </Badge>
      ),
    },
    {
      id: "price",
      title: text.price,
      isNumber: true,
      cell: (model) => <PriceCell price={model.price} />,
    },
    {
      id: "max",
      title: text.maxOutput,
      isNumber: true,
      from: "lg",
      cell: ({ maxOutputTokens }) =>
        maxOutputTokens > 0 ? text.tokens(maxOutputTokens.toLocaleString()) : "—",
    },
    {
      id: "try",
      title: common.actionsColumn,
      isTight: true,
      from: "md",
      cell: ({ modelKey }) => (
        <Link to="/playground" search={{ model: modelKey }} className={buttonClass()}>
          {text.try}
        </Link>
      ),
    },
  ];
}
