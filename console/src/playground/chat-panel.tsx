/** The chat with a text model. */
import { useState } from "react";
import type { Model } from "../../../gen/uas/inference/v1/model_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useText } from "../common/language.tsx";
import { Button } from "../ui/button.tsx";
import { Card } from "../ui/card.tsx";
import { AreaField, TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { chatCode } from "./request-code.ts";
import { Composer, resultMessages, ToolResults, useDraft } from "./composer.tsx";
import {
  type FunctionTool,
  imagesOf,
  type Message,
  openCalls,
  requestOf,
  type Settings,
  userMessage,
} from "./conversation.ts";
import { RunSide } from "./run-side.tsx";
import { ToolsCard } from "./tools-side.tsx";
import { type Chat, useChat } from "./use-chat.ts";
import { Turns } from "./messages.tsx";

/** The panel with conversation, tools, settings, code and cost. */
export function ChatPanel({
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

/**
 * The request in the code next to the chat: the next one while the user types, otherwise the last
 * one, otherwise an example.
 */
function shownRequest({ sent }: Chat, more: readonly Message[] | undefined) {
  if (more !== undefined) {
    return { request: undefined, messages: more, hint: "codeNext" } as const;
  }
  return sent === undefined
    ? ({ request: undefined, messages: [userMessage("Hello", [])], hint: "codeHint" } as const)
    : ({ request: sent, messages: [], hint: "codeSent" } as const);
}

/** The user's next input: a message, or the results of the tools that the model called. */
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

/** The size of the images in messages, as files. */
function bytesOf(messages: readonly Message[]): number {
  const urls = messages.flatMap(imagesOf);
  return urls.reduce((sum, { length }) => sum + Math.ceil((length * 3) / 4), 0);
}

/** The reason why a reply ended early, or was empty. */
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
