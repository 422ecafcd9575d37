/** The models of the document: their list, and the form of one. */
import { modelTypes } from "../../../src/config/kinds.ts";
import { Button } from "../ui/button.tsx";
import { ConfigText, type Path } from "./document.ts";
import { useEditor, useField } from "./editor.tsx";
import { EntriesCard } from "./entries.tsx";
import {
  ChoiceValue,
  FlagValue,
  FormPart,
  Item,
  NamesValue,
  NumberValue,
  PartError,
  ShareValues,
  TextValue,
} from "./fields.tsx";
import { Prices } from "./prices.tsx";
import { TestCall } from "./test-call.tsx";
import { useConfigurationText } from "./text.ts";

const types = [...modelTypes.keys()];

const formKeys = [
  "type",
  "name",
  "routes",
  "fallback_models",
  "max_output_tokens",
  "reasoning",
  "price",
  "price_lists",
];

/** The list of models. */
export function ModelsCard() {
  const text = useConfigurationText();
  const { document } = useEditor();
  const [vendor = ""] = document.keysAt(["vendors"]);
  return (
    <EntriesCard
      section={{
        name: "models",
        title: text.modelsTitle,
        hint: text.modelsHint,
        add: text.modelAdd,
        addTitle: text.modelNew,
        addHint: text.modelNewHint,
        none: text.modelNone,
        remove: text.modelRemove,
        start: { type: "TEXT", routes: [{ vendor }] },
        columns: [
          {
            id: "type",
            title: text.type,
            from: "sm",
            cell: (name) => document.textAt(["models", name, "type"]),
          },
          {
            id: "routes",
            title: text.routes,
            from: "md",
            cell: (name) =>
              routesOf(document, name)
                .map(({ vendor: each }) => each)
                .join(", "),
          },
        ],
        formKeys,
        form: (path) => <ModelForm path={path} />,
        footer: (name) => <ModelTest name={name} />,
      }}
    />
  );
}

function routesOf(document: ConfigText, name: string) {
  const path = ["models", name, "routes"];
  return Array.from({ length: document.sizeAt(path) ?? 0 }, (_, index) => ({
    vendor: document.textAt([...path, index, "vendor"]),
    model: document.textAt([...path, index, "model"]),
  }));
}

function ModelForm({ path }: { path: Path }) {
  const text = useConfigurationText();
  const { value: type } = useField([...path, "type"]);
  return (
    <>
      <FormPart title={text.general}>
        <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
          <ChoiceValue path={[...path, "type"]} label={text.type} choices={types} />
          <NumberValue path={[...path, "max_output_tokens"]} label={text.maxOutput} />
        </div>
        <TextValue path={[...path, "name"]} label={text.displayName} hint={text.displayNameHint} />
        {type === "TEXT" && <FlagValue path={[...path, "reasoning"]} label={text.reasoning} />}
        <NamesValue
          path={[...path, "fallback_models"]}
          label={text.fallbacks}
          hint={text.fallbacksHint}
        />
      </FormPart>
      <Routes path={[...path, "routes"]} type={type} />
      {/* Another type has other units. */}
      <Prices
        key={type}
        path={[...path, "price"]}
        type={type}
        title={text.prices}
        hint={text.pricesHint}
      />
      <ListPrices path={[...path, "price_lists"]} type={type} />
    </>
  );
}

/** The prices of the model in each price list; without one, the list's markup applies. */
function ListPrices({ path, type }: { path: Path; type: string }) {
  const text = useConfigurationText();
  const { document } = useEditor();
  return document.keysAt(["price_lists"]).map((list) => (
    <details key={list}>
      <summary className="w-fit cursor-pointer rounded text-[0.8125rem] text-accent">
        {text.pricesOfList(list)}
      </summary>
      <div className="pt-3">
        <Prices
          key={type}
          path={[...path, list]}
          type={type}
          title={text.pricesOfList(list)}
          hint={text.pricesOfListHint(document.textAt(["price_lists", list, "markup"]) || "0%")}
        />
      </div>
    </details>
  ));
}

function Routes({ path, type }: { path: Path; type: string }) {
  const text = useConfigurationText();
  const { document, write } = useEditor();
  const vendors = document.keysAt(["vendors"]);
  const size = document.sizeAt(path) ?? 0;
  const first = { vendor: vendors[0] ?? "" };
  const add = (): void =>
    write(size === 0 ? document.with(path, [first]) : document.with([...path, size], first));
  return (
    <FormPart
      title={text.routes}
      hint={text.routesHint}
      actions={<Button onClick={add}>{text.routeAdd}</Button>}
    >
      <PartError path={path} />
      {Array.from({ length: size }, (_, index) => {
        const route = [...path, index];
        return (
          <Item
            // oxlint-disable-next-line react/no-array-index-key -- routes have no other name
            key={index}
            title={text.routeNumber(index + 1)}
            remove={text.routeRemove(index + 1)}
            onRemove={size === 1 ? undefined : () => write(document.with(route, undefined))}
          >
            <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
              <ChoiceValue path={[...route, "vendor"]} label={text.vendor} choices={vendors} />
              <TextValue path={[...route, "model"]} label={text.vendorModel} />
            </div>
            <ShareValues path={route} />
            <NumberValue path={[...route, "max_context"]} label={text.maxContext} placeholder="–" />
            <details>
              <summary className="w-fit cursor-pointer rounded text-[0.8125rem] text-accent">
                {text.cost}
              </summary>
              <div className="pt-3">
                <Prices
                  key={type}
                  path={[...route, "cost"]}
                  type={type}
                  title={text.cost}
                  hint={text.costHint}
                />
              </div>
            </details>
          </Item>
        );
      })}
    </FormPart>
  );
}

/** A test call at each vendor that the model has in force. Only text models can be tested. */
function ModelTest({ name }: { name: string }) {
  const text = useConfigurationText();
  const { inForce } = useEditor();
  if (inForce.lineAt(["models", name]) === 0) {
    return (
      <FormPart title={text.test} hint={text.testHint}>
        <p className="text-muted">{text.testNotYet}</p>
      </FormPart>
    );
  }
  if (inForce.textAt(["models", name, "type"]) !== "TEXT") return null;
  const vendors = new Set(routesOf(inForce, name).map(({ vendor }) => vendor));
  return (
    <FormPart title={text.test} hint={text.testHint}>
      {[...vendors].map((vendor) => (
        <TestCall key={vendor} vendor={vendor} model={name} />
      ))}
    </FormPart>
  );
}
