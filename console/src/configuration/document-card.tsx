/** The whole document as text: for everything that has no form. */
import { useRef } from "react";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeBlock } from "../ui/code.tsx";
import { AreaField } from "../ui/field.tsx";
import { useEditor } from "./editor.tsx";
import { ProblemList } from "./problem-list.tsx";
import type { Problem } from "./problems.ts";
import { useConfigurationText } from "./text.ts";

/** Lines of the text area: long documents scroll in it. */
const rows = 28;

/** Shows the document, or edits it. */
export function DocumentCard() {
  const text = useConfigurationText();
  const { document, check, isEditable, write } = useEditor();
  const area = useRef<HTMLTextAreaElement>(null);
  const select = (problem: Problem): void => selectLine(area.current, problem);
  return (
    <Card>
      <CardHead title={text.tabs.document} hint={text.documentHint} />
      <div className="flex flex-col gap-4 px-5 pb-5">
        {isEditable ? (
          <AreaField
            ref={area}
            label={text.documentLabel}
            isLabelHidden
            rows={rows}
            wrap="off"
            spellCheck={false}
            autoCapitalize="off"
            autoCorrect="off"
            className="font-mono text-xs leading-relaxed"
            value={document.text}
            onChange={({ target }) => write(target.value)}
          />
        ) : (
          <CodeBlock label={text.documentLabel} code={document.text} />
        )}
        <ProblemList tone="bad" problems={check.problems} onOpen={select} />
        <ProblemList tone="warn" problems={check.warnings} onOpen={select} />
      </div>
    </Card>
  );
}

/** Moves the cursor to a problem, and its line into view. */
function selectLine(area: HTMLTextAreaElement | null, { line, column }: Problem): void {
  if (area === null) return;
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  area.focus();
  area.setSelectionRange(start + Math.max(0, column - 1), start + (lines[line - 1]?.length ?? 0));
  area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - rows / 2);
}
