/** Code and ids, with buttons that copy them. */
import { clsx } from "clsx";
import { useState } from "react";
import type { CodeVersion } from "../common/snippets.ts";
import { CopyButton } from "./copy.tsx";
import { Segments } from "./field.tsx";

/** A block of code with a button that copies it. */
export function CodeBlock({
  code,
  copied,
  label,
  className,
}: {
  code: string;
  /** The text to copy, if it is longer than the visible text. */
  copied?: (() => string) | undefined;
  /** Its name for screen readers. */
  label: string;
  className?: string;
}) {
  return (
    <div className={clsx("flex items-start rounded-lg border border-line bg-sunken", className)}>
      {/* A region that scrolls has to be reached by the keyboard. */}
      <pre
        tabIndex={0}
        role="region"
        aria-label={label}
        className="min-w-0 flex-1 max-h-[36rem] overflow-auto p-3.5 font-mono text-xs leading-relaxed"
      >
        {code}
      </pre>
      {/* Beside the code: above it, it would hide the end of a long first line. */}
      <span className="shrink-0 py-1.5 pr-1.5">
        <CopyButton isIcon text={copied ?? code} />
      </span>
    </div>
  );
}

/** Code in several languages, with a choice if there is more than one. */
export function CodeTabs({ label, versions }: { label: string; versions: readonly CodeVersion[] }) {
  const [chosen, setChosen] = useState(versions[0]?.id ?? "");
  const shown = versions.find(({ id }) => id === chosen) ?? versions[0];
  return (
    <div className="flex min-w-0 flex-col items-start gap-2">
      {versions.length > 1 && (
        <Segments
          label={label}
          value={shown?.id ?? ""}
          choices={versions.map(({ id, title }) => ({ value: id, label: title }))}
          onChoose={setChosen}
        />
      )}
      <CodeBlock
        className="w-full"
        label={shown?.title ?? label}
        code={shown?.code ?? ""}
        copied={shown?.copied}
      />
    </div>
  );
}

/** An id, shortened for tables, in full in its tooltip and when copied. */
export function Id({ value, isWhole = false }: { value: string; isWhole?: boolean }) {
  const shown = isWhole || value.length <= 14 ? value : `${value.slice(0, 8)}…${value.slice(-4)}`;
  return (
    <span className="inline-flex max-w-full items-center gap-0.5">
      <span title={value} className="min-w-0 font-mono text-xs break-all">
        {shown}
      </span>
      <span className="-my-2 inline-flex scale-80">
        <CopyButton isIcon text={value} />
      </span>
    </span>
  );
}
