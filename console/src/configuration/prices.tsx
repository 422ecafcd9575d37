/** Prices of a model, or costs of a route: all units of its type, from one or more dates. */
import { useState } from "react";
import { type PriceUnit, priceUnits, unitsOfType } from "../../../src/config/price-units.ts";
import { modelTypes } from "../../../src/config/kinds.ts";
import { useLanguage } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import type { Path } from "./document.ts";
import { useEditor } from "./editor.tsx";
import { AmountValue, FormPart, Item, PartError, TextValue } from "./fields.tsx";
import { useConfigurationText } from "./text.ts";

/** Units that are always shown; others once they have a price, or on request. */
const common = new Set([
  "input",
  "cached_input",
  "output",
  "image",
  "second",
  "character",
  "search",
]);

/** The prices at a path: one, or a list with dates. */
export function Prices({
  path,
  type,
  title,
  hint,
}: {
  path: Path;
  type: string;
  title: string;
  hint: string;
}) {
  const text = useConfigurationText();
  const { document, write } = useEditor();
  const size = document.sizeAt(path);
  const hasPrice = document.isCollectionAt(path);
  return (
    <FormPart
      title={title}
      hint={hint}
      actions={
        hasPrice && (
          <Button onClick={() => write(document.withPriceFrom(path, tomorrow()))}>
            {text.priceAdd}
          </Button>
        )
      }
    >
      <PartError path={path} />
      {size === undefined ? (
        <Units path={path} type={type} />
      ) : (
        Array.from({ length: size }, (_, index) => (
          <Item
            // oxlint-disable-next-line react/no-array-index-key -- prices have no other name
            key={index}
            title={text.priceNumber(index + 1)}
            remove={text.priceRemove(index + 1)}
            onRemove={
              size === 1 ? undefined : () => write(document.with([...path, index], undefined))
            }
          >
            <TextValue
              path={[...path, index, "from"]}
              label={text.priceFrom}
              hint={text.priceFromHint}
              placeholder={text.priceAlways}
            />
            <Units path={[...path, index]} type={type} />
          </Item>
        ))
      )}
    </FormPart>
  );
}

/** The next day in UTC, from which a new price applies unless another date is typed. */
function tomorrow(): string {
  return new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
}

/** The path of a unit: tools have a map of their own. */
function pathOf(path: Path, { name }: PriceUnit): Path {
  return [...path, ...name.split(".")];
}

function Units({ path, type }: { path: Path; type: string }) {
  const text = useConfigurationText();
  const { document } = useEditor();
  const units = unitsOf(type);
  const hasPrice = (unit: PriceUnit): boolean => document.textAt(pathOf(path, unit)) !== "";
  // Fixed while the form is open: a field must not move when its first digit is typed.
  const [shown] = useState(
    () => new Set(units.filter((unit) => common.has(unit.name) || hasPrice(unit))),
  );
  const more = units.filter((unit) => !shown.has(unit));
  const names = new Set([...priceUnits.map(({ name }) => name.split(".")[0]), "from"]);
  const others = document.keysAt(path).filter((key) => !names.has(key));
  return (
    <>
      <UnitGrid path={path} units={units.filter((unit) => shown.has(unit))} />
      {more.length > 0 && (
        <details>
          <summary className="w-fit cursor-pointer rounded text-[0.8125rem] text-accent">
            {text.moreUnits(more.length)}
          </summary>
          <div className="pt-3">
            <UnitGrid path={path} units={more} />
          </div>
        </details>
      )}
      {others.length > 0 && (
        <p className="text-xs text-muted">{text.priceMore(others.join(", "))}</p>
      )}
    </>
  );
}

function unitsOf(type: string): readonly PriceUnit[] {
  const known = modelTypes.get(type);
  return known === undefined ? priceUnits : unitsOfType(known);
}

function UnitGrid({ path, units }: { path: Path; units: readonly PriceUnit[] }) {
  const text = useConfigurationText();
  const { document } = useEditor();
  const { language, texts } = useLanguage();
  return (
    <div className="grid grid-cols-1 gap-3 sm:grid-cols-2">
      {units.map((unit) => {
        const at = pathOf(path, unit);
        const label = `${unit.label[language]} ${texts.models.per[unit.per]}`;
        return document.isCollectionAt(at) ? (
          <p key={unit.name} className="text-[0.8125rem]">
            {label}
            <span className="mt-1 block text-xs text-muted">{text.priceTable}</span>
          </p>
        ) : (
          <AmountValue key={unit.name} path={at} label={label} />
        );
      })}
    </div>
  );
}
