/** Common interface of the matrix's real clients. */

/** Where a client is pointed, and what it asks for. */
export interface Target {
  /** Without a path. */
  readonly origin: string;
  readonly key: string;
  readonly model: string;
}

/** One question. */
export interface Ask {
  readonly text: string;
  readonly stream?: boolean;
  readonly system?: string;
  /** Bytes of a PNG. */
  readonly image?: Buffer;
  /** The schema that the answer must fit. */
  readonly schema?: Readonly<Record<string, unknown>>;
  /** Whether reasoning is turned on. */
  readonly think?: boolean;
  readonly temperature?: number;
}

/** The client's reading. */
export interface Answer {
  readonly text: string;
  /** Reasoning that the client shows. */
  readonly reasoning?: string;
  readonly refusal?: string;
  /** Why it ended, in the words of the client's style. */
  readonly finish?: string | null | undefined;
  /** Tokens; `undefined` if the client shows none. */
  readonly usage?: { readonly input: number; readonly output: number } | undefined;
}

/** A failure, as the client raises it. */
export interface Failure {
  readonly status: number | undefined;
  /** The stable code; `undefined` if the client does not show it. */
  readonly code: string | undefined;
}

/** A real client, wrapped. */
export interface Client {
  readonly ask: (ask: Ask) => Promise<Answer>;
  /**
   * Asks with the two tools, runs what is called, and returns the last answer. Calls are counted.
   */
  readonly loop: (ask: Ask) => Promise<Answer>;
  /** Asks one after the other, with all replies sent back as they came; returns the last answer. */
  readonly converse: (asks: readonly Ask[]) => Promise<Answer>;
  /** Reads what `ask` threw. */
  readonly failureOf: (error: unknown) => Failure;
}

/** Makes a client for a target. */
export type MakeClient = (target: Target) => Client;

/** The style that a client speaks. */
export type ClientStyle = "chat" | "responses" | "messages";

/** A client in a table. */
export interface ClientRow {
  readonly name: string;
  readonly style: ClientStyle;
  readonly make: MakeClient;
  /** Features that the client lacks, with the reason. */
  readonly lacks?: Readonly<Partial<Record<Feature, string>>>;
}

/** A feature that a client may lack. */
export type Feature =
  | "refusal"
  | "finish"
  | "long"
  | "usage"
  /** Reads input tokens at the start of a stream only. */
  | "inputAtEnd"
  | "temperature"
  /** Shows none, though it may carry it. */
  | "shownReasoning"
  /** Does not send it back. */
  | "reasoning"
  | "code"
  /** The code of an error in the middle of a stream. */
  | "streamCode";
