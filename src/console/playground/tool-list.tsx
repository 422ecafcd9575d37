/** The tools that the model may call. */
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useText } from "../language.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import type { FunctionTool } from "./conversation.ts";
import { ToolDialog } from "./tool-dialog.tsx";

/** The card with their list. */
export function ToolList({
  tools,
  onChange,
}: {
  tools: readonly FunctionTool[];
  onChange: (tools: readonly FunctionTool[]) => void;
}) {
  const { playground: text } = useText();
  // The place of the one that is changed; behind the last: a new one.
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
          {tools.map(({ function: { name, description } }, index) => (
            <li key={name} className="flex items-center gap-1 py-2 pr-3 pl-5">
              <div className="min-w-0 flex-1">
                <code className="block truncate font-mono text-xs font-semibold">{name}</code>
                <span className="block truncate text-xs text-muted">{description}</span>
              </div>
              <Button
                tone="quiet"
                size="icon"
                aria-label={text.toolChange(name)}
                onClick={() => setOpen(index)}
              >
                <Pencil aria-hidden="true" />
              </Button>
              <Button
                tone="quiet"
                size="icon"
                aria-label={text.toolRemove(name)}
                onClick={() => onChange(tools.toSpliced(index, 1))}
              >
                <Trash2 aria-hidden="true" />
              </Button>
            </li>
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
