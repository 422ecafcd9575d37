/** Models: what can be called and what it costs. */
import { useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { Boxes } from "lucide-react";
import { Fragment, useState } from "react";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { type Model, ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { type Texts, useText } from "../common/language.tsx";
import { priceText } from "../common/money.ts";
import { snippets, taskSnippet } from "../common/snippets.ts";
import { buttonClass } from "../ui/button.tsx";
import { Card, Empty, Facts, PageHead } from "../ui/card.tsx";
import { CodeBlock, CodeTabs, Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { FilterBar, FilterSelect, isFound, SearchField } from "../ui/filter-bar.tsx";
import { Badge, ErrorNote } from "../ui/show.tsx";
import { type Column, RowButton, Table } from "../ui/table.tsx";
import {
  type AnyPrice,
  limitRows,
  PriceCell,
  PriceHistory,
  priceLines,
  useModels,
} from "./prices.tsx";

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

// One model in detail: examples, prices past and present, parameters of its tasks.

/** The details of a model; open while there is one. */
function ModelSheet({ model, onClose }: { model: Model | undefined; onClose: () => void }) {
  return (
    <Sheet isOpen={model !== undefined} onClose={onClose} title={model?.name}>
      {model !== undefined && (
        <div className="flex flex-col gap-7">
          <Id isWhole value={model.modelKey} />
          <Prices model={model} />
          <Limits model={model} />
          <Usage model={model} />
          <History model={model} />
        </div>
      )}
    </Sheet>
  );
}

function Prices({ model: { price } }: { model: Model }) {
  const texts = useText();
  const tiers = price?.tiers ?? [];
  const services = price?.serviceTiers ?? [];
  return (
    <section>
      <PriceCards price={price} />
      {tiers.map((tier) => (
        <div key={tier.above} className="mt-4">
          <h3 className="mb-1.5 text-[0.8125rem] font-medium">
            {texts.models.longPrompts(tier.above.toLocaleString())}
          </h3>
          <PriceCards price={tier} />
        </div>
      ))}
      {services.map(({ tier, price: own }) => (
        <div key={tier} className="mt-4">
          <h3 className="mb-1.5 text-[0.8125rem] font-medium">{texts.models.serviceTier(tier)}</h3>
          <PriceCards price={own} />
        </div>
      ))}
      {price !== undefined && price.images.length > 0 && (
        <dl className="mt-3 grid grid-cols-[auto_auto] gap-x-6 gap-y-1 text-[0.8125rem] sm:w-fit">
          {price.images.map(({ size, quality, price: amount }) => (
            <Fragment key={`${size} ${quality}`}>
              <dt className="text-muted">
                {[size, quality].filter((word) => word !== "").join(" · ") ||
                  texts.models.otherImages}
              </dt>
              <dd className="text-right tabular-nums">{priceText(amount)}</dd>
            </Fragment>
          ))}
        </dl>
      )}
    </section>
  );
}

function PriceCards({ price }: { price: AnyPrice | undefined }) {
  const texts = useText();
  return (
    <dl className="grid grid-cols-2 gap-3 sm:grid-cols-3">
      {priceLines(price, texts).map(({ name, price: amount, per }) => (
        <div key={name} className="rounded-xl border border-line px-4 py-3">
          <dt className="text-xs text-muted">{name}</dt>
          <dd className="mt-0.5 text-lg font-semibold tabular-nums">{amount}</dd>
          <dd className="text-xs text-muted">{per}</dd>
        </div>
      ))}
    </dl>
  );
}

function Limits({ model }: { model: Model }) {
  const texts = useText();
  return (
    <section>
      <h3 className="mb-3 font-semibold">{texts.models.limits}</h3>
      <Facts rows={limitRows(model, texts)} />
    </section>
  );
}

/** Types of models, besides text, that have tasks. */
const taskTypes: ReadonlySet<ModelType> = new Set([
  ModelType.IMAGE,
  ModelType.VIDEO,
  ModelType.AUDIO,
]);

/** Examples: a call for text models, a task for the others. */
function Usage({ model: { modelKey, type } }: { model: Model }) {
  const { models: text } = useText();
  const isText = type === ModelType.TEXT;
  const hasTasks = taskTypes.has(type);
  const { data } = useQuery(TaskService.method.getModelSchema, hasTasks ? { modelKey } : skipToken);
  if (isText) {
    return (
      <section>
        <h3 className="mb-3 font-semibold">{text.use}</h3>
        <CodeTabs
          label={text.use}
          versions={snippets({ origin: apiOrigin(), model: modelKey, key: undefined })}
        />
      </section>
    );
  }
  if (data === undefined) return null;
  return (
    <>
      <section>
        <h3 className="mb-3 font-semibold">{text.use}</h3>
        <CodeBlock
          label={text.use}
          code={taskSnippet({
            origin: apiOrigin(),
            body: { modelKey, [data.paramsField]: data.example ?? {} },
          })}
        />
      </section>
      <section>
        <h3 className="font-semibold">{text.schema}</h3>
        <p className="mb-3 text-[0.8125rem] text-muted">{text.schemaHint}</p>
        <ParameterList schema={data.schema ?? {}} />
      </section>
    </>
  );
}

interface Property {
  readonly type?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
}

/** The parameters of a schema, in a list. */
function ParameterList({ schema }: { schema: Readonly<Record<string, unknown>> }) {
  const { models: text } = useText();
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Property>>;
  const required = (schema["required"] ?? []) as readonly string[];
  return (
    <dl className="divide-y divide-line rounded-xl border border-line">
      {Object.entries(properties).map(([name, { type, description, enum: values }]) => (
        <div key={name} className="px-4 py-2.5 text-[0.8125rem]">
          <dt className="flex flex-wrap items-center gap-2">
            <code className="font-mono text-xs font-semibold">{name}</code>
            <span className="text-xs text-muted">{type}</span>
            {required.includes(name) && (
              <Badge isPlain tone="warn">
                {text.required}
              </Badge>
            )}
          </dt>
          <dd className="mt-0.5 text-muted">
            {description}
            {values !== undefined && (
              <span className="mt-0.5 block font-mono text-xs">{values.join(" · ")}</span>
            )}
          </dd>
        </div>
      ))}
    </dl>
  );
}

function History({ model: { modelKey } }: { model: Model }) {
  const { data } = useQuery(BillingService.method.getPrice, { modelKey });
  const versions = data?.prices?.versions ?? [];
  return versions.length < 2 ? null : <PriceHistory versions={versions} />;
}
