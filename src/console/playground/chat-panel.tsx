/** Talking to a model that writes. */
import { SendHorizontal, Square } from "lucide-react";
import { type KeyboardEvent, useRef, useState } from "react";
import type { Model } from "../../../gen/uas/inference/v1/model_pb.ts";
import { useText } from "../language.tsx";
import { Button } from "../ui/button.tsx";
import { Card } from "../ui/card.tsx";
import { AreaField, TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { chatCurl, ChatError, type ChatRequest, runChat, type Turn } from "./chat.ts";
import { RunSide } from "./run-side.tsx";
import { usePlaygroundKey } from "./use-playground-key.ts";

interface Settings {
  readonly system: string;
  readonly maxTokens: string;
  readonly temperature: string;
}

/** The request that the present settings and turns make. */
function requestOf(model: string, turns: readonly Turn[], settings: Settings): ChatRequest {
  const { system, maxTokens, temperature } = settings;
  const before: readonly Turn[] = system.trim() === "" ? [] : [{ role: "system", content: system }];
  return {
    model,
    messages: [...before, ...turns],
    ...(Number(maxTokens) > 0 && { max_tokens: Number(maxTokens) }),
    ...(temperature.trim() !== "" && { temperature: Number(temperature) }),
    stream: true,
  };
}

/** The panel with conversation, settings, code and cost. */
export function ChatPanel({ model }: { model: Model }) {
  const { playground: text } = useText();
  const [settings, setSettings] = useState<Settings>({
    system: "",
    maxTokens: "256",
    temperature: "",
  });
  const [draft, setDraft] = useState("");
  const chat = useChat(model.modelKey, settings);
  const shown =
    draft.trim() === "" ? chat.turns : [...chat.turns, { role: "user", content: draft } as const];
  return (
    <div className="grid grid-cols-1 items-start gap-6 xl:grid-cols-[minmax(0,1fr)_22rem]">
      <Card className="flex min-h-[30rem] flex-col">
        <Turns turns={chat.turns} isRunning={chat.isRunning} />
        <div className="px-5">
          <ErrorNote error={chat.error} />
        </div>
        <Composer chat={chat} draft={draft} onDraft={setDraft} />
      </Card>
      <RunSide
        requestId={chat.requestId}
        code={chatCurl(location.origin, requestOf(model.modelKey, shown, settings))}
      >
        <AreaField
          label={text.system}
          rows={3}
          value={settings.system}
          onChange={(event) => setSettings({ ...settings, system: event.target.value })}
        />
        <div className="grid grid-cols-2 gap-3">
          <TextField
            label={text.maxTokens}
            type="number"
            min={1}
            max={model.maxOutputTokens || undefined}
            value={settings.maxTokens}
            onChange={(event) => setSettings({ ...settings, maxTokens: event.target.value })}
          />
          <TextField
            label={text.temperature}
            type="number"
            min={0}
            max={2}
            step={0.1}
            placeholder={text.usual}
            value={settings.temperature}
            onChange={(event) => setSettings({ ...settings, temperature: event.target.value })}
          />
        </div>
        {chat.turns.length > 0 && (
          <Button className="self-start" disabled={chat.isRunning} onClick={chat.clear}>
            {text.clear}
          </Button>
        )}
      </RunSide>
    </div>
  );
}

function Composer({
  chat,
  draft,
  onDraft,
}: {
  chat: ReturnType<typeof useChat>;
  draft: string;
  onDraft: (draft: string) => void;
}) {
  const { playground: text } = useText();
  const send = (): void => {
    if (draft.trim() === "" || chat.isRunning) return;
    chat.send(draft);
    onDraft("");
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  return (
    <div className="flex items-end gap-2 p-4">
      <div className="flex-1">
        <AreaField
          label={text.message}
          isLabelHidden
          placeholder={text.message}
          rows={2}
          value={draft}
          onKeyDown={onKey}
          onChange={(event) => onDraft(event.target.value)}
        />
      </div>
      {chat.isRunning ? (
        <Button size="medium" onClick={chat.stop}>
          <Square aria-hidden="true" />
          {text.stop}
        </Button>
      ) : (
        <Button tone="primary" size="medium" disabled={draft.trim() === ""} onClick={send}>
          <SendHorizontal aria-hidden="true" />
          {text.send}
        </Button>
      )}
    </div>
  );
}

function Turns({ turns, isRunning }: { turns: readonly Turn[]; isRunning: boolean }) {
  const { playground: text } = useText();
  if (turns.length === 0) {
    return <p className="m-auto max-w-sm px-6 py-16 text-center text-muted">{text.chatEmpty}</p>;
  }
  return (
    <ol aria-live="polite" aria-busy={isRunning} className="flex flex-1 flex-col gap-5 p-5">
      {turns.map(({ role, content }, index) => (
        // oxlint-disable-next-line react/no-array-index-key -- turns are only ever added
        <li key={index} className={role === "user" ? "self-end" : "self-stretch"}>
          <p className="mb-1 text-xs text-muted">{role === "user" ? text.you : text.assistant}</p>
          <p
            className={
              role === "user"
                ? "rounded-2xl bg-sunken px-4 py-2.5 whitespace-pre-wrap"
                : "whitespace-pre-wrap"
            }
          >
            {content || "…"}
          </p>
        </li>
      ))}
    </ol>
  );
}

/** A conversation and the call that goes on with it. */
function useChat(model: string, settings: Settings) {
  const [turns, setTurns] = useState<readonly Turn[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [requestId, setRequestId] = useState("");
  const [running, setRunning] = useState<AbortController>();
  const keyOf = usePlaygroundKey();
  // What is added piece by piece while it comes.
  const reply = useRef("");
  const run = async (asked: readonly Turn[], stop: AbortController): Promise<void> => {
    reply.current = "";
    setError(null);
    const show = (): void => setTurns([...asked, { role: "assistant", content: reply.current }]);
    show();
    try {
      const id = await runChat(requestOf(model, asked, settings), {
        key: await keyOf(),
        signal: stop.signal,
        onText: (piece) => {
          reply.current += piece;
          show();
        },
      });
      setRequestId(id);
    } catch (failure) {
      if (failure instanceof ChatError) setRequestId(failure.requestId);
      if (!stop.signal.aborted) setError(failure);
      if (reply.current === "") setTurns(asked);
    } finally {
      setRunning(undefined);
    }
  };
  return {
    turns,
    error,
    requestId,
    isRunning: running !== undefined,
    send(content: string) {
      const stop = new AbortController();
      setRunning(stop);
      void run([...turns, { role: "user", content }], stop);
    },
    stop: () => running?.abort(),
    clear: () => setTurns([]),
  };
}
