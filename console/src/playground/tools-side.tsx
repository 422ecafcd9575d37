/** The tools that the model may call. */
import { useState } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { AreaField, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import type { FunctionTool } from "./conversation.ts";
import {
  formOf,
  nameFault,
  newTool,
  parametersFault,
  type SchemaFault,
  type ToolForm,
  toolOf,
} from "./tool-definition.ts";

/** The list of tools, with buttons to add, edit and remove one. */
export function ToolsCard({
  tools,
  onChange,
}: {
  tools: readonly FunctionTool[];
  onChange: (tools: readonly FunctionTool[]) => void;
}) {
  const { playground: text } = useText();
  // The index of the tool that is edited; the index after the last for a new one.
  const [open, setOpen] = useState<number>();
  return (
    <Card>
      <CardHead
        title={text.tools}
        hint={tools.length === 0 && text.toolsHint}
        actions={
          <Button onClick={() => setOpen(tools.length)}>
            <Plus aria-hidden="true" />
            {text.toolAdd}
          </Button>
        }
      />
      {tools.length > 0 && (
        <ul className="divide-y divide-line border-t border-line">
          {tools.map((tool, index) => (
            <ToolItem
              key={tool.function.name}
              tool={tool}
              onEdit={() => setOpen(index)}
              onRemove={() => onChange(tools.toSpliced(index, 1))}
            />
          ))}
        </ul>
      )}
      {open !== undefined && (
        <ToolDialog
          tool={tools[open]}
          others={tools.toSpliced(open, 1)}
          onClose={() => setOpen(undefined)}
          onSave={(tool) => {
            onChange(tools.toSpliced(open, 1, tool));
            setOpen(undefined);
          }}
        />
      )}
    </Card>
  );
}

function ToolItem({
  tool: {
    function: { name, description },
  },
  onEdit,
  onRemove,
}: {
  tool: FunctionTool;
  onEdit: () => void;
  onRemove: () => void;
}) {
  const { playground: text } = useText();
  return (
    <li className="flex items-center gap-1 py-2 pr-3 pl-5">
      <div className="min-w-0 flex-1">
        <code className="block truncate font-mono text-xs font-semibold">{name}</code>
        <span className="block truncate text-xs text-muted">{description}</span>
      </div>
      <Button tone="quiet" size="icon" aria-label={text.toolChange(name)} onClick={onEdit}>
        <Pencil aria-hidden="true" />
      </Button>
      <Button tone="quiet" size="icon" aria-label={text.toolRemove(name)} onClick={onRemove}>
        <Trash2 aria-hidden="true" />
      </Button>
    </li>
  );
}

function ToolDialog({
  tool,
  others,
  onClose,
  onSave,
}: {
  /** The tool that is edited; undefined for a new one. */
  tool: FunctionTool | undefined;
  /** The other tools, whose names cannot be used. */
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
    >
      <Fields
        form={form}
        onChange={setForm}
        wrongName={isTried ? wrongName : undefined}
        wrongParameters={isTried ? wrongParameters : undefined}
      />
    </FormDialog>
  );
}

function Fields({
  form,
  onChange,
  wrongName,
  wrongParameters,
}: {
  form: ToolForm;
  onChange: (form: ToolForm) => void;
  wrongName: ReturnType<typeof nameFault>;
  wrongParameters: SchemaFault | undefined;
}) {
  const { playground: text } = useText();
  return (
    <>
      <TextField
        label={text.toolName}
        hint={text.toolNameHint}
        error={wrongName ? text.toolNameFaults[wrongName] : undefined}
        placeholder="get_weather"
        autoFocus
        spellCheck={false}
        className="font-mono"
        value={form.name}
        onChange={(event) => onChange({ ...form, name: event.target.value })}
      />
      <AreaField
        label={text.toolDescription}
        hint={text.toolDescriptionHint}
        rows={2}
        value={form.description}
        onChange={(event) => onChange({ ...form, description: event.target.value })}
      />
      <AreaField
        label={text.toolParameters}
        hint={text.toolParametersHint}
        error={
          wrongParameters ? text.schemaFaults[wrongParameters.kind](wrongParameters) : undefined
        }
        rows={12}
        spellCheck={false}
        className="font-mono text-xs"
        value={form.parameters}
        onChange={(event) => onChange({ ...form, parameters: event.target.value })}
      />
    </>
  );
}
