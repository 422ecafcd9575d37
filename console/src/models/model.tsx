/** One model in detail: examples, prices past and present, parameters of its tasks. */
import { useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { Fragment } from "react";
import { BillingService } from "../../../gen/uas/billing/v1/billing_service_pb.ts";
import { type Model, ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { TaskService } from "../../../gen/uas/task/v1/task_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useText } from "../common/language.tsx";
import { priceText } from "../common/money.ts";
import { snippets, taskSnippet } from "../common/snippets.ts";
import { Facts } from "../ui/card.tsx";
import { CodeBlock, CodeTabs, Id } from "../ui/code.tsx";
import { Sheet } from "../ui/dialog.tsx";
import { Badge } from "../ui/show.tsx";
import { type AnyPrice, limitRows, PriceHistory, priceLines } from "./prices.tsx";

/** The details of a model; open while there is one. */
export function ModelSheet({ model, onClose }: { model: Model | undefined; onClose: () => void }) {
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

/** Types of models that have tasks, in addition to text. */
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
