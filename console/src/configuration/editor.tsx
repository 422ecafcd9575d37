/** The state that all forms of the page share: the document, its changes and its problems. */
import { useQuery } from "@connectrpc/connect-query";
import { keepPreviousData } from "@tanstack/react-query";
import { createContext, useContext, useEffect, useState } from "react";
import type { Config, ConfigDifference } from "../../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import type { ConfigText, Path, Value } from "./document.ts";
import { isAt, type Problem, readProblem } from "./problems.ts";

/** The result of checking a document. */
export interface Check {
  /** Whether the newest text is not checked yet. */
  readonly isPending: boolean;
  readonly error: unknown;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly differences: readonly ConfigDifference[];
  readonly needsRestart: readonly string[];
}

/** The document that is shown or edited. */
export interface Editor {
  readonly config: Config;
  readonly document: ConfigText;
  /** The document in force. */
  readonly inForce: ConfigText;
  /** Whether the console may change it: not while the file is in force. */
  readonly isEditable: boolean;
  readonly check: Check;
  /** Replaces the whole text. */
  readonly write: (text: string) => void;
}

const EditorContext = createContext<Editor | undefined>(undefined);

export const EditorProvider = EditorContext.Provider;

/** The document of the page. */
export function useEditor(): Editor {
  const editor = useContext(EditorContext);
  if (editor === undefined) throw new Error("no document is given above");
  return editor;
}

/** Milliseconds without typing after which a text is checked. */
const pauseMs = 400;

/** Checks a text while it is typed. */
export function useCheck(text: string, isOn: boolean): Check {
  const [checked, setChecked] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setChecked(text), pauseMs);
    return () => clearTimeout(timer);
  }, [text]);
  const query = useQuery(
    ConfigService.method.checkConfig,
    { document: checked },
    // Problems of the text before stay until the next ones are known, so that nothing flickers.
    { enabled: isOn, placeholderData: keepPreviousData, staleTime: 0, gcTime: 0 },
  );
  const { data, error } = query;
  return {
    isPending: isOn && (checked !== text || query.isPlaceholderData || query.isPending),
    error: isOn ? error : null,
    problems: isOn ? (data?.problems ?? []).map((line) => readProblem(line)) : [],
    warnings: isOn ? (data?.warnings ?? []).map((line) => readProblem(line)) : [],
    differences: isOn ? (data?.differences ?? []) : [],
    needsRestart: isOn ? (data?.needsRestart ?? []) : [],
  };
}

/** A value of the document as a field shows it. */
export interface FieldState {
  readonly value: string;
  /** Undefined if it has no problem. */
  readonly error: string | undefined;
  /** Writes a value; undefined removes it. */
  readonly set: (value: Value | undefined) => void;
}

/** Returns a value of the document, its problems, and how to change it. */
export function useField(path: Path): FieldState {
  const { document, check, write } = useEditor();
  const found = check.problems.filter((problem) => isAt(problem, path));
  return {
    value: document.textAt(path),
    error: found.length === 0 ? undefined : found.map(({ message }) => message).join("; "),
    set: (value) => write(document.with(path, value)),
  };
}
