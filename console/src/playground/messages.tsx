/** The messages of a conversation. */
import { Wrench } from "lucide-react";
import { type ReactNode, useId } from "react";
import { useText } from "../common/language.tsx";
import { CodeBlock } from "../ui/code.tsx";
import type { Reply } from "./chat.ts";
import { imagesOf, type Message, textOf, type ToolCall } from "./conversation.ts";
import type { Chat, Turn } from "./use-chat.ts";

/** The turns so far, and the reply that is streaming. */
export function Turns({ chat }: { chat: Chat }) {
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
