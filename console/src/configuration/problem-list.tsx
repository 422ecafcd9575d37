/** Lists of problems, warnings and differences. */
import { CircleAlert, TriangleAlert } from "lucide-react";
import { Table } from "../ui/table.tsx";
import type { Problem } from "./problems.ts";
import { useConfigurationText } from "./text.ts";

/** Problems or warnings, each with its place. */
export function ProblemList({
  problems,
  tone,
  onOpen,
}: {
  problems: readonly Problem[];
  tone: "bad" | "warn";
  /** Opens a line of the document. Without it, the line is plain text. */
  onOpen?: (problem: Problem) => void;
}) {
  const text = useConfigurationText();
  const Icon = tone === "bad" ? CircleAlert : TriangleAlert;
  return (
    <ul className="flex flex-col gap-2 text-[0.8125rem]">
      {problems.map((problem) => {
        const { line, column, path, message } = problem;
        const place = text.atLine(line, column);
        return (
          <li key={`${line}:${column} ${message}`} className="flex items-start gap-2">
            <Icon
              aria-hidden="true"
              className={`mt-0.5 size-4 shrink-0 ${tone === "bad" ? "text-bad" : "text-warn"}`}
            />
            <span className="min-w-0 break-words">
              {path !== "" && <span className="font-mono text-xs">{path}: </span>}
              {message}{" "}
              {line > 0 &&
                (onOpen === undefined ? (
                  <span className="text-xs text-muted">{place}</span>
                ) : (
                  <button
                    type="button"
                    onClick={() => onOpen(problem)}
                    className="rounded text-xs text-accent underline underline-offset-4"
                  >
                    {place}
                  </button>
                ))}
            </span>
          </li>
        );
      })}
    </ul>
  );
}

/** A setting that differs. */
export interface Difference {
  readonly path: string;
  readonly before: string;
  readonly after: string;
  /** Whether the other operator changed it too. Default false. */
  readonly isOverlap?: boolean;
}

/** Settings that differ, with their values before and after. */
export function DifferenceTable({
  label,
  differences,
}: {
  label: string;
  differences: readonly Difference[];
}) {
  const text = useConfigurationText();
  const value = (shown: string) => (
    <span className="block min-w-20 font-mono text-xs wrap-anywhere">{shown || text.absent}</span>
  );
  return (
    <Table
      label={label}
      columns={[
        {
          id: "path",
          title: text.setting,
          cell: ({ path, isOverlap = false }: Difference) => (
            <span className="block min-w-24 font-mono text-xs wrap-anywhere">
              {path}
              {isOverlap && <span className="block font-sans text-warn">{text.overlap}</span>}
            </span>
          ),
        },
        { id: "before", title: text.before, cell: ({ before }) => value(before) },
        { id: "after", title: text.after, cell: ({ after }) => value(after) },
      ]}
      rows={differences}
      keyOf={({ path }) => path}
      empty={<p className="px-5 py-3 text-muted">{text.noDifferences}</p>}
    />
  );
}
