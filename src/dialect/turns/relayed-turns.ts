/**
 * Edits of relayed requests for vendors that lack a role, or refuse system text behind the first
 * message. All other bytes are the client's. Pure.
 */
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import type { Member, Outline } from "../../wire/json/outline.ts";
import { ObjectScan, type Span } from "../../wire/json/scan.ts";
import type { Edit } from "../../wire/json/splice.ts";

/** Position of a style's turns. */
export interface TurnForm {
  /** The member with the turns. */
  readonly list: "messages" | "input";
  /** The type of a text among the parts of a system message. */
  readonly textType: "text" | "input_text";
  /** Member with the system text, if it is not among the turns. Default: the first turns. */
  readonly system?: "system";
}

/** Rules for editing. */
export interface TurnRules {
  readonly lateSystem: NonNullable<VendorQuirks["lateSystem"]>;
  readonly developerRole: NonNullable<VendorQuirks["developerRole"]>;
  /** The id of a tool call as the vendor takes it. Absent for any. */
  readonly callId?: ((id: string) => string) | undefined;
}

/** A turn of the body. */
interface Turn extends Span {
  readonly role: unknown;
  /** The value of its role. */
  readonly roleSpan: Span;
}

/** The edits of a body's turns. None if the vendor takes them as they are. */
export function turnEdits(
  bytes: Buffer,
  outline: Outline,
  { form, rules }: { readonly form: TurnForm; readonly rules: TurnRules },
): readonly Edit[] {
  const { lateSystem, developerRole, callId } = rules;
  const list = memberOf(outline, form.list);
  if (list === undefined || !isConcerned(bytes, list, rules)) return [];
  const turns = readTurns(bytes, form.list);
  const systems = turns.filter(({ role }) => isSystem(role));
  const first = turns.findIndex(({ role }) => !isSystem(role));
  const headLength = first < 0 ? turns.length : first;
  const head = form.system === undefined ? systems.slice(0, headLength) : [];
  const late = systems.slice(head.length);
  const edits = callId === undefined ? [] : idEdits(bytes, turns, callId);
  const isStrict = lateSystem !== "in_place";
  const moved = lateSystem === "at_top" ? late : [];
  const merged = isStrict ? [...head, ...moved] : [];
  const isMerged = merged.length > (form.system === undefined ? Math.min(head.length, 1) : 0);
  for (const turn of systems) {
    if (isMerged && merged.includes(turn)) continue;
    const isUsers = lateSystem === "as_user" && late.includes(turn);
    const word = isUsers ? "user" : "system";
    const isRenamed = isUsers || (turn.role === "developer" && developerRole === "refused");
    if (isRenamed) edits.push({ ...turn.roleSpan, text: JSON.stringify(word) });
  }
  if (isMerged) edits.push(...mergeEdits(bytes, outline, { form, turns, merged }));
  return edits;
}

/**
 * Whether the turns may have something to edit: most have not, and a search costs less than a scan.
 */
function isConcerned(
  bytes: Buffer,
  { valueStart, valueEnd }: Member,
  { lateSystem, developerRole, callId }: TurnRules,
): boolean {
  if (callId !== undefined) return true;
  const isStrict = lateSystem !== "in_place";
  if (!isStrict && developerRole === "accepted") return false;
  const text = bytes.subarray(valueStart, valueEnd);
  return text.includes("developer") || (isStrict && text.includes("system"));
}

function memberOf({ members }: Outline, name: string): Member | undefined {
  return members.findLast(({ key }) => key === name);
}

function isSystem(role: unknown): boolean {
  return role === "system" || role === "developer";
}

function readTurns(bytes: Buffer, list: string): readonly Turn[] {
  const turn = new ObjectScan();
  return new ObjectScan()
    .scan(bytes, 0, bytes.length)
    .elements(list)
    .map(({ start, end }) => {
      const role = turn.scan(bytes, start, end).find("role");
      const roleSpan = role < 0 ? { start, end: start } : spanOf(turn, role);
      return { start, end, role: turn.value("role"), roleSpan };
    });
}

function spanOf(scan: ObjectScan, member: number): Span {
  return { start: scan.start(member), end: scan.end(member) };
}

/** Removes the merged turns, and writes one system text in their place. */
function mergeEdits(
  bytes: Buffer,
  outline: Outline,
  {
    form,
    turns,
    merged,
  }: { readonly form: TurnForm; readonly turns: readonly Turn[]; readonly merged: readonly Turn[] },
): readonly Edit[] {
  const list = memberOf(outline, form.list);
  const above = form.system && memberOf(outline, form.system);
  const contents = [
    ...(above ? [bytes.toString("utf8", above.valueStart, above.valueEnd)] : []),
    ...merged.map(({ start, end }) => new ObjectScan().scan(bytes, start, end).json("content")),
  ];
  const content = joinContents(contents, form.textType);
  const kept = turns.filter((turn) => !merged.includes(turn));
  const removals = removalsOf(turns, merged);
  if (form.system !== undefined) {
    if (above !== undefined) {
      return [...removals, { start: above.valueStart, end: above.valueEnd, text: content }];
    }
    const at = list?.keyStart ?? 0;
    return [{ start: at, end: at, text: `"${form.system}":${content},` }, ...removals];
  }
  const message = `{"role":"system","content":${content}}${kept.length > 0 ? "," : ""}`;
  const at = (list?.valueStart ?? 0) + 1;
  // Before a removal that begins at the same place.
  return [{ start: at, end: at, text: message }, ...removals];
}

/** Removes turns, each with an adjacent comma. */
function removalsOf(turns: readonly Turn[], removed: readonly Turn[]): Edit[] {
  const firstKept = turns.findIndex((turn) => !removed.includes(turn));
  return turns.flatMap((turn, index): Edit[] => {
    if (!removed.includes(turn)) return [];
    const { start, end } = turn;
    const next = turns[index + 1];
    const before = turns[index - 1];
    // Turns before the first remaining one take the comma after them, all others the comma before
    // them.
    if (firstKept < 0 || index < firstKept) return [{ start, end: next?.start ?? end, text: "" }];
    return [{ start: before?.end ?? start, end, text: "" }];
  });
}

/**
 * Several contents as one: a text if all are texts, else a list of parts. @param contents as JSON
 */
function joinContents(contents: readonly string[], textType: string): string {
  const said = contents.filter((json) => json !== "" && json !== "null");
  if (said.every((json) => json.startsWith('"'))) {
    return JSON.stringify(said.map((json) => JSON.parse(json) as string).join("\n\n"));
  }
  const parts = said.map((json) =>
    json.startsWith("[") ? json.slice(1, -1).trim() : `{"type":"${textType}","text":${json}}`,
  );
  return `[${parts.filter((part) => part !== "").join(",")}]`;
}

/** Gives calls and their results ids that the vendor takes. */
function idEdits(bytes: Buffer, turns: readonly Turn[], callId: (id: string) => string): Edit[] {
  const edits: Edit[] = [];
  const turn = new ObjectScan();
  const call = new ObjectScan();
  const edit = (scan: ObjectScan, name: string): void => {
    const id = scan.value(name);
    if (typeof id !== "string" || callId(id) === id) return;
    edits.push({ ...spanOf(scan, scan.find(name)), text: JSON.stringify(callId(id)) });
  };
  for (const { start, end } of turns) {
    edit(turn.scan(bytes, start, end), "tool_call_id");
    for (const each of turn.elements("tool_calls"))
      edit(call.scan(bytes, each.start, each.end), "id");
  }
  return edits;
}
