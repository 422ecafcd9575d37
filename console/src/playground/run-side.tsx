/** The column beside a run: its cost, its settings, its tools, and the code that does the same. */
import { useQuery } from "@connectrpc/connect-query";
import { skipToken } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { CallRecord } from "../../../gen/uas/billing/v1/call_pb.ts";
import { CallService } from "../../../gen/uas/billing/v1/call_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import type { CodeVersion } from "../common/snippets.ts";
import { durationText } from "../common/time.ts";
import { buttonClass, Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { Amount } from "../ui/show.tsx";
import { millis } from "../common/contract.ts";
import { Pencil, Plus, Trash2 } from "lucide-react";
import { AreaField, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import {
  type FunctionTool,
  formOf,
  nameFault,
  newTool,
  parametersFault,
  type SchemaFault,
  type ToolForm,
  toolOf,
} from "./conversation.ts";

/** The column. Cards in `more` stand between the settings and the code. */
export function RunSide({
  requestId,
  code,
  codeHint,
  more,
  children,
}: {
  /** The request id of the last run. Empty: there was none. */
  requestId: string;
  code: readonly CodeVersion[];
  /** Says which request the code makes. */
  codeHint: string;
  /** Cards between the settings and the code. */
  more?: ReactNode;
  /** The settings. */
  children?: ReactNode;
}) {
  const { playground: text } = useText();
  return (
    <div className="flex min-w-0 flex-col gap-6">
      {requestId !== "" && <Cost requestId={requestId} />}
      {children !== undefined && (
        <Card>
          <CardHead title={text.settings} />
          <div className="flex flex-col gap-4 px-5 pb-5">{children}</div>
        </Card>
      )}
      {more}
      <Card>
        <CardHead title={text.code} hint={codeHint} />
        <div className="px-5 pb-5">
          <CodeTabs label={text.code} versions={code} />
        </div>
      </Card>
    </div>
  );
}

/** The tokens of a call, where it had any, and how long it took. */
function spentText({ usage, duration: took }: CallRecord): string {
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  const duration = durationText(millis(took));
  if (inputTokens + outputTokens === 0) return duration;
  return `${inputTokens.toLocaleString()} → ${outputTokens.toLocaleString()} · ${duration}`;
}

/** How often the call is fetched until it is recorded, in milliseconds. */
const lookMs = 500;

/** The cost of the last run, which is recorded a moment after its end. */
function Cost({ requestId }: { requestId: string }) {
  const { playground: text, overview } = useText();
  const accountId = useAccountId();
  const { data } = useQuery(
    CallService.method.listCalls,
    requestId === "" ? skipToken : { accountId, filter: { requestId }, pageSize: 1 },
    {
      staleTime: 0,
      refetchInterval: ({ state }) => (state.data?.calls.length ?? 0) === 0 && lookMs,
    },
  );
  const call = data?.calls[0];
  return (
    <Card className="px-5 py-4">
      <p className="text-[0.8125rem] text-muted">{text.cost}</p>
      <div role="status" className="mt-1 flex items-end justify-between gap-3">
        <div>
          <p className="text-2xl font-semibold tracking-tight">
            <Amount money={call?.cost} />
          </p>
          <p className="mt-1 text-xs text-muted">{call !== undefined && spentText(call)}</p>
        </div>
        {call !== undefined && (
          <Link to="/calls" search={{ call: call.callId }} className={buttonClass()}>
            {overview.openCall}
          </Link>
        )}
      </div>
    </Card>
  );
}

// The tools that the model may call.

/** The list of tools, with what adds, edits and removes one. */
export function ToolsCard({
  tools,
  onChange,
}: {
  tools: readonly FunctionTool[];
  onChange: (tools: readonly FunctionTool[]) => void;
}) {
  const { playground: text } = useText();
  // The index of the tool that is edited; behind the last: a new one.
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
  /** The tool that is edited; `undefined`: a new one. */
  tool: FunctionTool | undefined;
  /** The other tools, whose names are taken. */
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
