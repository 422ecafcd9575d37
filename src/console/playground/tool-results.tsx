/** Where the user answers for the tools that the model called. */
import { SendHorizontal } from "lucide-react";
import { type FormEvent, useState } from "react";
import { useText } from "../language.tsx";
import { Button } from "../ui/button.tsx";
import { AreaField } from "../ui/field.tsx";
import type { Message, ToolCall } from "./conversation.ts";

/** The messages that results are. */
export function resultMessages(
  calls: readonly ToolCall[],
  results: readonly string[],
): readonly Message[] {
  return calls.map(({ id }, index) => ({
    role: "tool",
    tool_call_id: id,
    content: results[index] ?? "",
  }));
}

/** The form. Its results are told as they are written. */
export function ToolResults({
  calls,
  results,
  onWrite,
  onSend,
}: {
  calls: readonly ToolCall[];
  results: readonly string[];
  onWrite: (results: readonly string[]) => void;
  onSend: () => void;
}) {
  const { playground: text } = useText();
  const [isTried, setTried] = useState(false);
  const isMissing = (index: number): boolean => (results[index] ?? "").trim() === "";
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setTried(true);
    if (!calls.some((_, index) => isMissing(index))) onSend();
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-3 border-t border-line p-4">
      <p className="text-[0.8125rem] text-muted">{text.resultsHint}</p>
      {calls.map(({ function: { name } }, index) => (
        <AreaField
          // oxlint-disable-next-line react/no-array-index-key -- ids may repeat, their order does not change
          key={index}
          label={
            <span className="wrap-anywhere">
              {text.resultOf(calls.length > 1 ? `${name} (${index + 1})` : name)}
            </span>
          }
          error={isTried && isMissing(index) ? text.resultMissing : undefined}
          rows={3}
          spellCheck={false}
          autoFocus={index === 0}
          className="font-mono text-xs"
          value={results[index] ?? ""}
          onChange={({ target }) =>
            onWrite(calls.map((_, at) => (at === index ? target.value : (results[at] ?? ""))))
          }
        />
      ))}
      <Button type="submit" tone="primary" size="medium" className="self-end">
        <SendHorizontal aria-hidden="true" />
        {text.sendResults(calls.length)}
      </Button>
    </form>
  );
}
