/** The states that operators are alerted of, and the text of an alert. Pure. */
import { isoTime } from "../core/iso-time.ts";

/** Something that needs the operator, while it lasts. */
export interface Condition {
  /** The kind, in lower case with underscores, such as `credential_refused`. */
  readonly name: string;
  /** The part that it is about, such as a vendor; empty for the whole. Without secrets. */
  readonly subject: string;
  /** `critical`: calls fail or money is lost. `warning`: they will, without an action. */
  readonly severity: "critical" | "warning";
  /** A description of the state, and what to do. */
  readonly text: string;
}

/** A message to operators. */
export interface OperatorMessage extends Condition {
  /** `test`: nothing is the case. */
  readonly event: "begun" | "lasting" | "ended" | "test";
  /** When it began, in milliseconds since 1970. */
  readonly beginMs: number;
  /** When the message was made. */
  readonly nowMs: number;
}

const titles: Readonly<Record<OperatorMessage["event"], string>> = {
  begun: "Alert",
  lasting: "Still",
  ended: "Resolved",
  test: "Test",
};

/** The title: one line. */
export function titleOf({ event, name, subject }: OperatorMessage): string {
  const about = subject === "" ? "" : ` (${subject})`;
  return `[UAS] ${titles[event]}: ${name.replaceAll("_", " ")}${about}`;
}

/** The title, what is the case and since when, as plain text. */
export function textOf(message: OperatorMessage): string {
  const { event, text, beginMs, nowMs, severity } = message;
  const since = `Since ${isoTime(beginMs)}`;
  const minutes = Math.max(1, Math.round((nowMs - beginMs) / 60_000));
  const until = event === "ended" ? ` until ${isoTime(nowMs)} (${minutes} min)` : "";
  return `${titleOf(message)}\n\n${text}\n\n${since}${until}. Severity: ${severity}.`;
}

/** The JSON body of a webhook. */
export function bodyOf(message: OperatorMessage, format: "json" | "slack"): string {
  if (format === "slack") return JSON.stringify({ text: textOf(message) });
  const { event, name, subject, severity, text, beginMs, nowMs } = message;
  const times = { beginTime: isoTime(beginMs), time: isoTime(nowMs) };
  return JSON.stringify({ event, name, subject, severity, text, ...times });
}
