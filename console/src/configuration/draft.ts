/** The draft of an operator: a changed document, and the state that it was made from. */
import { useCallback, useState } from "react";
import type { Config } from "../../../gen/uas/config/v1/config_pb.ts";

/** A changed document. */
export interface Draft {
  readonly document: string;
  /** The document that it was made from, and the `etag` of that state. */
  readonly base: { readonly document: string; readonly etag: string };
}

/** Where a draft is kept while the tab is open: it survives a reload, and another page. */
const key = "uas.configuration";

function read(): Draft | undefined {
  try {
    const kept = sessionStorage.getItem(key);
    return kept === null ? undefined : (JSON.parse(kept) as Draft);
  } catch {
    return undefined;
  }
}

function keep(draft: Draft | undefined): void {
  try {
    if (draft === undefined) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(draft));
  } catch {
    // Without storage, the draft lasts as long as the page.
  }
}

/** The draft, and how to change it. */
export interface DraftState {
  /** Undefined if nothing is changed. */
  readonly draft: Draft | undefined;
  /** Changes the document. Without a difference from its base, there is no draft. */
  readonly write: (document: string) => void;
  /** Replaces the draft; undefined discards it. */
  readonly replace: (draft: Draft | undefined) => void;
}

/** Keeps the draft. @param config what is in force */
export function useDraft(config: Config): DraftState {
  const [draft, setDraft] = useState(read);
  const replace = useCallback((next: Draft | undefined) => {
    keep(next);
    setDraft(next);
  }, []);
  const base = draft?.base ?? { document: config.document, etag: config.etag };
  const write = (document: string): void =>
    replace(document === base.document ? undefined : { document, base });
  return { draft, write, replace };
}
