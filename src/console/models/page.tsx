/** Models: what can be called and what it costs. */
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Boxes } from "lucide-react";
import { useState } from "react";
import { type Model, ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { useText } from "../common/language.tsx";
import { buttonClass } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { type Column, RowButton, Table } from "../ui/table.tsx";
import { ModelSheet } from "./model-sheet.tsx";
import { priceLines, useModels } from "./prices.tsx";

const types = [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO] as const;

/** The page. */
export function ModelsPage() {
  const { models: text, tasks } = useText();
  const { model: openKey } = useSearch({ from: "/inside/models" });
  const navigate = useNavigate({ from: "/models" });
  const { data, error, refetch } = useModels();
  const [search, setSearch] = useState("");
  const [type, setType] = useState("");
  const open = (model?: string): void =>
    void navigate({ search: model === undefined ? {} : { model }, replace: true });
  const found = data?.filter(
    (model) =>
      (type === "" || model.type === Number(type)) &&
      `${model.name} ${model.modelKey}`.toLowerCase().includes(search.trim().toLowerCase()),
  );
  return (
    <>
      <PageHead title={text.title} hint={text.hint} />
      <Card>
        <div className="flex flex-wrap gap-3 border-b border-line p-4">
          <div className="w-full max-w-64">
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
          <SelectField
            label={text.type}
            isLabelHidden
            className="w-36"
            value={type}
            choices={[
              { value: "", label: text.anyType },
              ...types.map((each) => ({ value: String(each), label: tasks.types[each] ?? "" })),
            ]}
            onChoose={setType}
          />
        </div>
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
  const { models: text, tasks } = texts;
  const columns: Column<Model>[] = [
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
      title: <span className="sr-only">{text.input}</span>,
      isNumber: true,
      cell: (model) => (
        <ul className="flex flex-wrap justify-end gap-x-5 gap-y-0.5">
          {priceLines(model.price, texts).map(({ name, price, per }) => (
            <li key={name + per} className="whitespace-nowrap">
              <span className="text-muted">{name}</span> {price}{" "}
              <span className="text-xs text-muted">{per}</span>
            </li>
          ))}
        </ul>
      ),
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
      title: <span className="sr-only">{text.try}</span>,
      isTight: true,
      from: "md",
      cell: ({ modelKey }) => (
        <Link to="/playground" search={{ model: modelKey }} className={buttonClass()}>
          {text.try}
        </Link>
      ),
    },
  ];
  return (
    <Table
      label={text.title}
      columns={columns}
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
