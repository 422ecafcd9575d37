/** The playground: every model, charged and logged like any call. */
import { useQuery } from "@connectrpc/connect-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { clsx } from "clsx";
import { Wrench } from "lucide-react";
import { type ReactNode, useId, useState } from "react";
import { type Model, ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import { TaskStatus } from "../../../gen/uas/task/v1/task_pb.ts";
import {
  type GetModelSchemaResponse,
  TaskService,
} from "../../../gen/uas/task/v1/task_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useText } from "../common/language.tsx";
import { taskSnippet } from "../common/snippets.ts";
import { useModels } from "../models/prices.tsx";
import { TaskBadge, TaskProgress, TaskResult, useTask } from "../tasks/task.tsx";
import { Button, buttonClass } from "../ui/button.tsx";
import { Card, Empty, PageHead, Skeleton } from "../ui/card.tsx";
import { CodeBlock } from "../ui/code.tsx";
import { AreaField, SelectField, TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { type Reply, chatCode } from "./chat.ts";
import { Composer, resultMessages, ToolResults, useDraft } from "./composer.tsx";
import {
  bodyOf,
  type FunctionTool,
  imagesOf,
  type Message,
  openCalls,
  requestOf,
  type Settings,
  textOf,
  type ToolCall,
  userMessage,
} from "./conversation.ts";
import { RunSide, ToolsCard } from "./run-side.tsx";
import { type Chat, type Turn, useChat } from "./use-chat.ts";
import { usePlaygroundKey } from "./use-key.ts";

/** `/playground`. */
export function PlaygroundPage() {
  const { playground: text, models: modelTexts, common } = useText();
  const { model: chosen } = useSearch({ from: "/inside/playground" });
  const navigate = useNavigate({ from: "/playground" });
  const { data, error, refetch } = useModels();
  // Tools are kept when the model changes, so that models can be compared.
  const [tools, setTools] = useState<readonly FunctionTool[]>([]);
  const model =
    data?.find(({ modelKey }) => modelKey === chosen) ??
    data?.find(({ type }) => type === ModelType.TEXT) ??
    data?.[0];
  return (
    <>
      <PageHead
        title={text.title}
        hint={text.hint}
        actions={
          model !== undefined && (
            <SelectField
              label={common.model}
              isLabelHidden
              className="w-64"
              value={model.modelKey}
              choices={(data ?? []).map(({ modelKey, name }) => ({ value: modelKey, label: name }))}
              onChoose={(value) => void navigate({ search: { model: value }, replace: true })}
            />
          )
        }
      />
      <ErrorNote error={error} onRetry={() => void refetch()} />
      {data === undefined && error === null && <Skeleton className="h-96" />}
      {data !== undefined && model === undefined && (
        <Empty title={modelTexts.none} hint={modelTexts.noneHint} />
      )}
      {model !== undefined &&
        (model.type === ModelType.TEXT ? (
          <ChatPanel key={model.modelKey} model={model} tools={tools} onTools={setTools} />
        ) : (
          <TaskPanel key={model.modelKey} model={model} />
        ))}
    </>
  );
}

// The chat with a text model.

/** The panel with conversation, tools, settings, code and cost. */
function ChatPanel({
  model,
  tools,
  onTools,
}: {
  model: Model;
  tools: readonly FunctionTool[];
  onTools: (tools: readonly FunctionTool[]) => void;
}) {
  const { playground: text } = useText();
  const [settings, setSettings] = useState<Settings>(firstSettings);
  const requestFor = (messages: readonly Message[]) =>
    requestOf(model.modelKey, messages, { ...settings, tools });
  const chat = useChat(requestFor);
  const said = chat.turns.map(({ message }) => message);
  const input = useInput(chat, said);
  const shown = shownRequest(chat, input.isWritten ? input.more : undefined);
  return (
    <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,1fr)_22rem]">
      <Card className="flex min-h-[30rem] min-w-0 flex-col">
        <Turns chat={chat} />
        <div className="flex flex-col gap-3 px-5">
          <Ending chat={chat} />
          <ErrorNote error={chat.error} onRetry={() => chat.retry()} />
        </div>
        <InputArea chat={chat} input={input} />
      </Card>
      <RunSide
        requestId={chat.requestId}
        code={chatCode(apiOrigin(), shown.request ?? requestFor([...said, ...shown.messages]))}
        codeHint={text[shown.hint]}
        more={<ToolsCard tools={tools} onChange={onTools} />}
      >
        <SettingsFields model={model} settings={settings} onChange={setSettings} />
        {chat.turns.length > 0 && (
          <Button className="self-start" disabled={chat.reply !== undefined} onClick={input.reset}>
            {text.clear}
          </Button>
        )}
      </RunSide>
    </div>
  );
}

const firstSettings: Settings = { system: "", maxTokens: "256", temperature: "" };

/** The code beside the chat: of the next request while one is written, else of the last one, else an example. */
function shownRequest({ sent }: Chat, more: readonly Message[] | undefined) {
  if (more !== undefined) {
    return { request: undefined, messages: more, hint: "codeNext" } as const;
  }
  return sent === undefined
    ? ({ request: undefined, messages: [userMessage("Hello", [])], hint: "codeHint" } as const)
    : ({ request: sent, messages: [], hint: "codeSent" } as const);
}

/** What the user writes next: a message, or the results of the tools that the model called. */
function useInput(chat: Chat, said: readonly Message[]) {
  const draft = useDraft(bytesOf(said));
  const [results, setResults] = useState<readonly string[]>([]);
  const calls = chat.reply === undefined ? openCalls(said) : [];
  const urls = draft.images.map(({ url }) => url);
  const more: readonly Message[] =
    calls.length > 0 ? resultMessages(calls, results) : [userMessage(draft.text, urls)];
  return {
    draft,
    calls,
    results,
    setResults,
    more,
    isWritten: calls.length > 0 || !draft.isEmpty,
    send: (): void => {
      chat.send(more);
      draft.clear();
      setResults([]);
    },
    reset: (): void => {
      chat.clear();
      setResults([]);
    },
  };
}

function InputArea({ chat, input }: { chat: Chat; input: ReturnType<typeof useInput> }) {
  const { calls, results, draft } = input;
  if (calls.length > 0) {
    return (
      <ToolResults calls={calls} results={results} onWrite={input.setResults} onSend={input.send} />
    );
  }
  return (
    <Composer
      draft={draft}
      hasFocus={chat.turns.length > 0}
      isRunning={chat.reply !== undefined}
      onSend={input.send}
      onStop={() => chat.stop()}
    />
  );
}

/** The size of the images in messages as files, in bytes. */
function bytesOf(messages: readonly Message[]): number {
  const urls = messages.flatMap(imagesOf);
  return urls.reduce((sum, { length }) => sum + Math.ceil((length * 3) / 4), 0);
}

/** Why a reply ended early, or said nothing. */
function Ending({ chat: { finish, turns } }: { chat: Chat }) {
  const { playground: text } = useText();
  const isSilent = turns.at(-1)?.message.role !== "assistant";
  const note = text.finishes[finish] ?? (finish !== "" && isSilent ? text.silent : undefined);
  return note === undefined ? null : (
    <p role="status" className="rounded-xl bg-warn-soft px-4 py-3 text-[0.8125rem] text-warn">
      {note}
    </p>
  );
}

function SettingsFields({
  model,
  settings,
  onChange,
}: {
  model: Model;
  settings: Settings;
  onChange: (settings: Settings) => void;
}) {
  const { playground: text } = useText();
  return (
    <>
      <AreaField
        label={text.system}
        rows={3}
        value={settings.system}
        onChange={(event) => onChange({ ...settings, system: event.target.value })}
      />
      <div className="grid grid-cols-2 gap-3">
        <TextField
          label={text.maxTokens}
          type="number"
          min={1}
          max={model.maxOutputTokens || undefined}
          value={settings.maxTokens}
          onChange={(event) => onChange({ ...settings, maxTokens: event.target.value })}
        />
        <TextField
          label={text.temperature}
          type="number"
          min={0}
          max={2}
          step={0.1}
          placeholder={text.usual}
          value={settings.temperature}
          onChange={(event) => onChange({ ...settings, temperature: event.target.value })}
        />
      </div>
    </>
  );
}

// Generating images, videos and audio: a task, submitted as any program does it, and followed until its end.

/** Runs a task with parameters that are written as JSON, starting with an example. */
function TaskPanel({ model: { modelKey } }: { model: Model }) {
  const { data, error } = useQuery(TaskService.method.getModelSchema, { modelKey });
  if (error !== null) return <ErrorNote error={error} />;
  if (data === undefined) return <Skeleton className="h-96" />;
  return <TaskForm key={modelKey} schema={data} />;
}

function TaskForm({
  schema: { modelKey, paramsField, example },
}: {
  schema: GetModelSchemaResponse;
}) {
  const { playground: text } = useText();
  const [written, setWritten] = useState(() => JSON.stringify(example ?? {}, undefined, 2));
  const [taskId, setTaskId] = useState<string>();
  const [requestId, setRequestId] = useState("");
  const [failure, setFailure] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const keyOf = usePlaygroundKey();
  const params = readObject(written);
  const body = { modelKey, [paramsField]: params ?? {} };
  const submit = async (): Promise<void> => {
    setBusy(true);
    setFailure(null);
    try {
      const made = await submitTask(body, await keyOf());
      setTaskId(made.taskId);
      setRequestId(made.requestId);
    } catch (error) {
      setFailure(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,1fr)_22rem]">
      <Card className="flex flex-col gap-4 p-5">
        <AreaField
          label={text.params}
          error={params === undefined ? text.paramsWrong : undefined}
          rows={8}
          spellCheck={false}
          value={written}
          onChange={(event) => setWritten(event.target.value)}
          className="font-mono text-xs"
        />
        <ErrorNote error={failure} />
        <Button
          tone="primary"
          size="medium"
          className="self-start"
          isBusy={isBusy}
          disabled={params === undefined}
          onClick={() => void submit()}
        >
          {text.run}
        </Button>
        {taskId !== undefined && <Running key={taskId} taskId={taskId} />}
      </Card>
      <RunSide
        requestId={requestId}
        codeHint={text.codeNext}
        code={[{ id: "curl", title: "curl", code: taskSnippet({ origin: apiOrigin(), body }) }]}
      />
    </div>
  );
}

function Running({ taskId }: { taskId: string }) {
  const { playground: text } = useText();
  const { task, error } = useTask(taskId);
  if (error !== undefined) return <ErrorNote error={error} />;
  if (task === undefined) return null;
  return (
    <div className="flex flex-col gap-4 border-t border-line pt-4">
      <div role="status" className="flex items-center gap-4">
        <TaskBadge task={task} />
        {task.status === TaskStatus.PROGRESS && <TaskProgress task={task} />}
      </div>
      {task.errorMessage !== "" && <p className="text-bad">{task.errorMessage}</p>}
      <TaskResult task={task} />
      <Link to="/tasks" search={{ task: taskId }} className={clsx(buttonClass(), "self-start")}>
        {text.openTask}
      </Link>
    </div>
  );
}

/** Parses a JSON object; `undefined`: it is none. */
function readObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Submits a task over the documented path. @throws Error with the gateway's message */
async function submitTask(
  body: object,
  key: string,
): Promise<{ taskId: string; requestId: string }> {
  const response = await fetch(`${apiOrigin()}/api/ai/tasks`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    // This path ignores the session cookie, so it is not sent.
    credentials: "omit",
    body: bodyOf(body),
  });
  const told = (await response.json()) as { taskId?: string; error?: { message?: string } };
  if (told.taskId === undefined) throw new Error(told.error?.message ?? String(response.status));
  return { taskId: told.taskId, requestId: response.headers.get("x-request-id") ?? "" };
}

// The messages of a conversation.

/** The turns so far, and the reply that is streaming. */
function Turns({ chat }: { chat: Chat }) {
  const { playground: text } = useText();
  const { turns, reply } = chat;
  if (turns.length === 0) {
    return <p className="m-auto max-w-sm px-6 py-16 text-center text-muted">{text.chatEmpty}</p>;
  }
  return (
    <ol
      aria-live="polite"
      aria-busy={reply !== undefined}
      className="flex min-w-0 flex-1 flex-col gap-5 p-5"
    >
      {turns.map((turn, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- turns are only ever added
        <TurnItem key={index} turn={turn} nameOf={(id) => calledName(turns.slice(0, index), id)} />
      ))}
      {reply !== undefined && <Coming reply={reply} />}
    </ol>
  );
}

/** The name of the tool that a call was for. */
function calledName(turns: readonly Turn[], id: string): string {
  const calls = turns.flatMap(({ message }) =>
    message.role === "assistant" ? (message.tool_calls ?? []) : [],
  );
  return calls.findLast((call) => call.id === id)?.function.name ?? id;
}

function TurnItem({
  turn: { message, reasoning = "" },
  nameOf,
}: {
  turn: Turn;
  nameOf: (callId: string) => string;
}) {
  const { playground: text } = useText();
  switch (message.role) {
    case "assistant":
      return (
        <Said by={text.assistant}>
          <Answer reply={{ text: textOf(message), reasoning, calls: message.tool_calls ?? [] }} />
        </Said>
      );
    case "tool":
      return (
        <Said by={text.resultOf(nameOf(message.tool_call_id))}>
          <p className="max-h-60 overflow-y-auto rounded-lg border border-line bg-sunken px-3.5 py-2.5 font-mono text-xs break-words whitespace-pre-wrap">
            {message.content}
          </p>
        </Said>
      );
    case "user":
    case "system":
    default:
      return <UserSaid message={message} />;
  }
}

function UserSaid({ message }: { message: Message }) {
  const { playground: text } = useText();
  const said = textOf(message);
  return (
    <li className="flex max-w-full flex-col items-end gap-1 self-end">
      <p className="text-xs text-muted">{text.you}</p>
      {imagesOf(message).map((url, index) => (
        <img
          // oxlint-disable-next-line react/no-array-index-key -- what was said does not change
          key={index}
          src={url}
          alt={text.image(index + 1)}
          className="max-h-60 max-w-full rounded-xl border border-line object-contain"
        />
      ))}
      {said !== "" && (
        <p className="max-w-full rounded-2xl bg-sunken px-4 py-2.5 break-words whitespace-pre-wrap">
          {said}
        </p>
      )}
    </li>
  );
}

function Said({ by, children }: { by: string; children: ReactNode }) {
  return (
    <li className="flex min-w-0 flex-col gap-1.5">
      <p className="text-xs wrap-anywhere text-muted">{by}</p>
      {children}
    </li>
  );
}

function Coming({ reply }: { reply: Reply }) {
  const { playground: text } = useText();
  const { calls, reasoning } = reply;
  const isQuiet = reply.text === "" && calls.length === 0 && reasoning === "";
  return <Said by={text.assistant}>{isQuiet ? <p>…</p> : <Answer isComing reply={reply} />}</Said>;
}

function Answer({
  reply: { text: said, reasoning, calls },
  isComing = false,
}: {
  reply: Pick<Reply, "text" | "reasoning" | "calls">;
  isComing?: boolean;
}) {
  const { playground: text } = useText();
  return (
    <>
      {reasoning !== "" && (
        <details open={isComing && said === ""} className="text-[0.8125rem] text-muted">
          <summary className="cursor-pointer select-none">{text.reasoning}</summary>
          <p className="mt-1.5 border-l-2 border-line-strong pl-3 break-words whitespace-pre-wrap">
            {reasoning}
          </p>
        </details>
      )}
      {said !== "" && <p className="break-words whitespace-pre-wrap">{said}</p>}
      {calls.map((call, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- calls are only ever added
        <Call key={index} call={call} />
      ))}
    </>
  );
}

/** A tool call, with its arguments indented if they are JSON. */
function Call({ call: { function: called } }: { call: ToolCall }) {
  const { playground: text } = useText();
  const id = useId();
  return (
    <section aria-labelledby={id} className="flex min-w-0 flex-col gap-1.5">
      <p id={id} className="flex items-center gap-1.5 text-[0.8125rem]">
        <Wrench aria-hidden="true" className="size-3.5 shrink-0 text-muted" />
        <span className="min-w-0 wrap-anywhere">
          {text.calls} <code className="font-mono text-xs font-semibold">{called.name}</code>
        </span>
      </p>
      <CodeBlock label={text.argumentsOf(called.name)} code={laidOut(called.arguments)} />
    </section>
  );
}

function laidOut(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), undefined, 2);
  } catch {
    return json;
  }
}
