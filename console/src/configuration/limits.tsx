/** The default limits of the installation. */
import { Card, CardHead } from "../ui/card.tsx";
import { useEditor } from "./editor.tsx";
import { FormPart, LimitValues, TextValue } from "./fields.tsx";
import { useConfigurationText } from "./text.ts";

/** The form of `limits:`. */
export function LimitsCard() {
  const text = useConfigurationText();
  const { document, isEditable } = useEditor();
  const isShared = document.isShared(["limits"]);
  return (
    <Card>
      <CardHead title={text.tabs.limits} hint={text.limitsDefault} />
      <fieldset
        disabled={!isEditable || isShared || document.isBroken}
        className="flex max-w-3xl min-w-0 flex-col gap-7 px-5 pb-5"
      >
        {isShared && <p className="text-warn">{text.shared}</p>}
        {document.isBroken && <p className="text-bad">{text.broken}</p>}
        {(["key", "account", "model"] as const).map((kind) => (
          <FormPart key={kind} title={text.limitsOf[kind]} hint={text.limitsHint}>
            <LimitValues path={["limits", kind]} />
          </FormPart>
        ))}
        <div className="sm:w-1/3">
          <TextValue
            path={["limits", "wait"]}
            label={text.wait}
            hint={text.waitHint}
            placeholder="–"
          />
        </div>
      </fieldset>
    </Card>
  );
}
