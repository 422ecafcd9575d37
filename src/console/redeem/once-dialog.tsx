/** Shows new redeem codes, once: they exist in this dialog and nowhere else, and are gone with it. */
import { Download } from "lucide-react";
import { useState } from "react";
import { useText } from "../language.tsx";
import { dayText } from "../time.ts";
import { Button } from "../ui/button.tsx";
import { copyText } from "../ui/copy.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { AreaField } from "../ui/field.tsx";
import { saveFile } from "../ui/save-file.ts";

/** The dialog. It stays until it is closed on purpose. */
export function OnceCodesDialog({
  codes,
  onClose,
}: {
  codes: readonly string[];
  onClose: () => void;
}) {
  const {
    operator: { codes: text },
    common,
  } = useText();
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  const [isSaved, setSaved] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const lines = codes.join("\n");
  const copy = async (): Promise<void> => {
    const isDone = await copyText(lines);
    setOutcome(isDone ? "copied" : "failed");
    if (isDone) setSaved(true);
  };
  const save = (): void => {
    const name = `redeem-codes-${dayText(Date.now())}.txt`;
    saveFile(name, new Blob([`${lines}\n`], { type: "text/plain" }));
    setSaved(true);
  };
  const isWarned = isLeaving && !isSaved;
  return (
    <Dialog
      isOpen
      isSticky
      onClose={onClose}
      title={text.onceTitle(codes.length)}
      description={text.onceHint}
      footer={
        <>
          {isWarned && (
            <p role="alert" className="mr-auto self-center text-[0.8125rem] text-bad">
              {text.onceLeave}
            </p>
          )}
          <Button
            tone={isSaved ? "primary" : "secondary"}
            onClick={() => (isSaved || isLeaving ? onClose() : setLeaving(true))}
          >
            {isWarned ? text.onceLeaveConfirm : text.done}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        <AreaField
          readOnly
          autoFocus
          label={text.onceList}
          value={lines}
          rows={Math.min(10, Math.max(2, codes.length))}
          spellCheck={false}
          onFocus={(event) => event.target.select()}
          onCopy={() => setSaved(true)}
          className="resize-none font-mono text-xs leading-relaxed"
        />
        <div className="flex flex-wrap gap-2">
          <Button tone="primary" onClick={() => void copy()}>
            {outcome === "copied" ? common.copied : common.copy}
          </Button>
          <Button onClick={save}>
            <Download aria-hidden="true" />
            {text.save}
          </Button>
        </div>
        <p
          role="status"
          className={outcome === "failed" ? "text-[0.8125rem] text-warn" : "sr-only"}
        >
          {outcome === "failed" ? common.notCopied : outcome === "copied" ? common.copied : ""}
        </p>
      </div>
    </Dialog>
  );
}
