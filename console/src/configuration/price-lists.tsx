/** Price lists: other prices for the accounts that have one. */
import { Plus } from "lucide-react";
import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { useEditor } from "./editor.tsx";
import { AddDialog } from "./entries.tsx";
import { TextValue } from "./fields.tsx";
import { useConfigurationText } from "./text.ts";

/** The lists with their markups. The prices of a model in a list are in the form of the model. */
export function PriceListsCard() {
  const text = useConfigurationText();
  const { document, isEditable, write } = useEditor();
  const [isAdding, setAdding] = useState(false);
  const names = document.keysAt(["price_lists"]);
  const isFixed = !isEditable || document.isBroken || document.isShared(["price_lists"]);
  return (
    <Card>
      <CardHead
        title={text.priceLists}
        hint={text.priceListsHint}
        actions={
          isEditable && (
            <Button disabled={isFixed} onClick={() => setAdding(true)}>
              <Plus aria-hidden="true" />
              {text.priceListAdd}
            </Button>
          )
        }
      />
      <fieldset disabled={isFixed} className="flex min-w-0 flex-col gap-4 px-5 pb-5">
        {names.length === 0 && <p className="text-muted">{text.priceListNone}</p>}
        {names.map((name) => (
          <div key={name} className="flex flex-wrap items-end gap-3">
            <div className="w-full sm:w-64">
              <TextValue
                path={["price_lists", name, "markup"]}
                label={text.markupOf(name)}
                placeholder="0%"
              />
            </div>
            {isEditable && (
              <Button
                tone="quiet"
                aria-label={text.priceListRemove(name)}
                onClick={() => write(document.with(["price_lists", name], undefined))}
              >
                {text.secretDelete}
              </Button>
            )}
          </div>
        ))}
      </fieldset>
      {isAdding && (
        <AddDialog
          section={{
            name: "price_lists",
            addTitle: text.priceListNew,
            addHint: text.priceListNewHint,
            start: { markup: "10%" },
          }}
          onClose={() => setAdding(false)}
          onAdded={() => setAdding(false)}
        />
      )}
    </Card>
  );
}
