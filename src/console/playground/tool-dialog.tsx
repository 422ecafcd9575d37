/** The form of a tool. */
import { useState } from "react";
import { useText } from "../language.tsx";
import { AreaField, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import type { FunctionTool } from "./conversation.ts";
import { parametersFault } from "./schema-fault.ts";
import { formOf, nameFault, newTool, toolOf } from "./tool.ts";

/** The dialog. */
export function ToolDialog({
  tool,
  others,
  onClose,
  onSave,
}: {
  /** The tool that is changed; `undefined`: a new one. */
  tool: FunctionTool | undefined;
  /** The tools that it must differ from. */
  others: readonly FunctionTool[];
  onClose: () => void;
  onSave: (tool: FunctionTool) => void;
}) {
  const { playground: text, common } = useText();
  const [form, setForm] = useState(() => (tool === undefined ? newTool : formOf(tool)));
  const [isTried, setTried] = useState(false);
  const wrongName = nameFault(form.name.trim(), others);
  const wrongParameters = parametersFault(form.parameters);
  const submit = (): void => {
    setTried(true);
    if (wrongName === undefined && wrongParameters === undefined) onSave(toolOf(form));
  };
  return (
    <FormDialog
      onClose={onClose}
      title={tool === undefined ? text.toolNew : text.toolChange(tool.function.name)}
      description={text.toolHint}
      submit={tool === undefined ? text.toolAdd : common.save}
      onSubmit={submit}
      isBusy={false}
      error={null}
    >
      <TextField
        label={text.toolName}
        hint={text.toolNameHint}
        error={isTried && wrongName ? text.toolNameFaults[wrongName] : undefined}
        placeholder="get_weather"
        autoFocus
        spellCheck={false}
        className="font-mono"
        value={form.name}
        onChange={(event) => setForm({ ...form, name: event.target.value })}
      />
      <AreaField
        label={text.toolDescription}
        hint={text.toolDescriptionHint}
        rows={2}
        value={form.description}
        onChange={(event) => setForm({ ...form, description: event.target.value })}
      />
      <AreaField
        label={text.toolParameters}
        hint={text.toolParametersHint}
        error={
          isTried && wrongParameters
            ? text.schemaFaults[wrongParameters.kind](wrongParameters)
            : undefined
        }
        rows={12}
        spellCheck={false}
        className="font-mono text-xs"
        value={form.parameters}
        onChange={(event) => setForm({ ...form, parameters: event.target.value })}
      />
    </FormDialog>
  );
}
