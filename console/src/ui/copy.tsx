/** Copying and downloading. Copying also works if the browser has no clipboard, over plain HTTP. */
import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { useText } from "../common/language.tsx";
import { Button, type ButtonProps } from "./button.tsx";

/** Copies a text. @returns whether it is in the clipboard */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

/**
 * Copies without the clipboard API: selects the text in an invisible field. It is in the open
 * dialog, which keeps the focus.
 */
function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.readOnly = true;
  area.className = "fixed top-0 left-0 opacity-0";
  const focused = document.activeElement;
  (document.querySelector("[role=dialog]") ?? document.body).append(area);
  try {
    area.select();
    // Deprecated, but the only method that works without TLS.
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    area.remove();
    if (focused instanceof HTMLElement) focused.focus();
  }
}

/** Time for which a button shows the outcome. */
const saidMs = 2_000;

/** A button that copies and shows the outcome. A long text can be a function, called on a click. */
export function CopyButton({
  text,
  label,
  isIcon = false,
  ...rest
}: { text: string | (() => string); label?: string; isIcon?: boolean } & Omit<
  ButtonProps,
  "onClick"
>) {
  const { common } = useText();
  const [outcome, setOutcome] = useState<"copied" | "failed">();
  useEffect(() => {
    if (outcome === undefined) return undefined;
    const timer = setTimeout(() => setOutcome(undefined), saidMs);
    return () => clearTimeout(timer);
  }, [outcome]);
  const name = label ?? common.copy;
  const said =
    outcome === "copied" ? common.copied : outcome === "failed" ? common.notCopied : name;
  const copy = async (): Promise<void> => {
    const done = await copyText(typeof text === "string" ? text : text());
    setOutcome(done ? "copied" : "failed");
  };
  return (
    <Button
      {...rest}
      {...(isIcon && { size: "icon", tone: "quiet", "aria-label": said, title: said })}
      onClick={() => void copy()}
    >
      {outcome === "copied" ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
      {!isIcon && said}
      <span role="status" className="sr-only">
        {outcome === undefined ? "" : said}
      </span>
    </Button>
  );
}

/** Downloads a file that the page has. */
export function saveFile(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
