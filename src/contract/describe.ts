/** Describes changes of the contract for people: one line for each, with its effects. */
import type { Change } from "./compare.ts";
import type { Element, ElementKind } from "./elements.ts";

/** A heading with its lines. */
export interface Section {
  readonly heading: string;
  readonly lines: readonly string[];
}

/**
 * Describes changes in sections: breaking ones first, changed comments last. Sections without lines
 * are left out.
 */
export function describeChanges(changes: readonly Change[]): Section[] {
  const [described, others] = split(changes, ({ action }) => action === "described");
  const [breaking, compatible] = split(others, ({ isBreaking }) => isBreaking);
  const linesOf = (...actions: Change["action"][]): string[] =>
    compatible.filter(({ action }) => actions.includes(action)).map(lineOf);
  const sections = [
    { heading: "Breaking", lines: breaking.map(lineOf) },
    { heading: "Deprecated", lines: linesOf("deprecated") },
    { heading: "Added", lines: linesOf("added") },
    { heading: "Changed", lines: linesOf("changed") },
    { heading: "Comments", lines: commentLines(described) },
  ];
  return sections.filter(({ lines }) => lines.length > 0);
}

function split<T>(items: readonly T[], isFirst: (item: T) => boolean): [T[], T[]] {
  return [items.filter(isFirst), items.filter((item) => !isFirst(item))];
}

/** Describes one change. */
function lineOf(change: Change): string {
  const effects = [
    ["REST", restEffect(change)],
    ["SDKs", sdkEffect(change)],
    ["Docs", docsEffect(change)],
  ].flatMap(([audience, effect]) => (effect === "" ? [] : [`${audience}: ${effect}`]));
  return effects.length === 0 ? headOf(change) : `${headOf(change)} ${effects.join("; ")}.`;
}

function headOf({ action, element, property }: Change): string {
  const name = `${element.kind} \`${element.name}\``;
  if (action === "deprecated" || (action === "removed" && element.deprecation !== undefined)) {
    return `${capital(action)}: ${name}${announcementText(element)}.`;
  }
  if (property === undefined) return `${capital(action)}: ${name}${factsText(action, element)}.`;
  return `Changed: ${name}, ${property.name} from ${valueText(property.before)} to ${valueText(property.after)}.`;
}

function announcementText({ deprecation }: Element): string {
  if (deprecation === undefined) return "";
  const { since, sunsetDate, replacement } = deprecation;
  return ` (announced in ${since}, served until ${sunsetDate}: ${replacement})`;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function valueText(value: string): string {
  return value === "" ? "none" : `\`${value}\``;
}

/** Properties of a new element that the changelog shows. */
const shownFacts: Readonly<Partial<Record<ElementKind, readonly string[]>>> = {
  "REST path": ["RPC", "style"],
  RPC: ["access"],
  field: ["type", "rule required"],
  option: ["type"],
};

function factsText(action: Change["action"], { kind, facts }: Element): string {
  if (action !== "added") return "";
  const shown = (shownFacts[kind] ?? []).flatMap((name) => {
    const value = facts.get(name) ?? "";
    return value === "" ? [] : [`${name.replace("rule ", "")} \`${value}\``];
  });
  return shown.length === 0 ? "" : ` (${shown.join(", ")})`;
}

/** Kinds that REST clients see in bodies and parameters. */
const bodyKinds: ReadonlySet<ElementKind> = new Set(["message", "field", "enum", "enum value"]);

function restEffect({ action, element, property, paths, isBreaking }: Change): string {
  const { kind } = element;
  if (kind === "REST path") {
    if (action === "added") return "a new path";
    if (action === "removed") return "requests get 404";
    return property?.name === "RPC"
      ? "another RPC serves the path"
      : "the form of its requests or replies changes";
  }
  if (kind === "enum" || kind === "enum value") {
    if (element.name.startsWith(errorCodes)) return "an error code of every path";
  }
  if (paths.length === 0) return "";
  if (kind === "RPC") return property?.name === "access" ? `callers of ${pathList(paths)}` : "";
  if (!bodyKinds.has(kind) || property?.name === "number") return "";
  const effect = isBreaking ? "requests or replies that worked may fail at" : "JSON of";
  return `${effect} ${pathList(paths)}`;
}

const errorCodes = "uas.error.v1.ErrorCode";

/** More paths than these are counted. */
const pathsMax = 3;

function pathList(paths: readonly string[]): string {
  const shown = paths.slice(0, pathsMax).join(", ");
  return paths.length > pathsMax ? `${shown} and ${paths.length - pathsMax} more` : shown;
}

function sdkEffect({ action, element, property, isBreaking }: Change): string {
  const { kind } = element;
  if (kind === "REST path") return "";
  if (action === "deprecated") return "generated code warns; move to the replacement";
  if (action === "added")
    return isBreaking ? "requests without it are refused" : addedEffects[kind];
  if (action === "removed") return "code that uses it does not compile; older clients fail";
  const changed = property?.name ?? "";
  if (changed.startsWith("rule ")) {
    return isBreaking
      ? "requests that were accepted are refused with INVALID_ARGUMENT"
      : "more requests are accepted";
  }
  if (changed === "access") return isBreaking ? "some callers get PERMISSION_DENIED" : "";
  if (changed === "side effects") return "retries and GET requests of generated clients may change";
  if (changed === "name in JSON") return "JSON of older clients is not understood";
  if (kind === "package") return "imports of generated code change";
  return "older clients misread it; generate and release clients again";
}

const addedEffects: Readonly<Record<ElementKind, string>> = {
  "REST path": "",
  service: "generate clients again to call it",
  RPC: "generate clients again to call it",
  message: "generate clients again to use it",
  field: "older clients ignore it; generate clients again to use it",
  enum: "generate clients again to use it",
  "enum value": "older clients see an unknown value",
  option: "",
  package: "generate clients again to use it",
};

function docsEffect({ action, element, property }: Change): string {
  if (element.kind === "package" || element.kind === "option") return "";
  if (element.name.startsWith(`${errorCodes}.`)) return "docs/errors.md";
  const place = element.kind === "REST path" ? "the list of REST paths" : "the reference";
  if (action === "deprecated") return `name the replacement in ${place}`;
  if (property?.name === "access") return "the reference, and who may call it";
  return place;
}

/** More names than these are counted. */
const namesMax = 6;

/** One line for the changed comments of each file. */
function commentLines(described: readonly Change[]): string[] {
  return [...Map.groupBy(described, ({ element }) => element.file)]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([file, changes]) => {
      const names = changes.map(({ element }) => `\`${shortName(element.name)}\``);
      const more = names.length > namesMax ? ` and ${names.length - namesMax} more` : "";
      return `\`${file}\`: ${names.slice(0, namesMax).join(", ")}${more}. Docs: the reference.`;
    });
}

/** A name without its package. */
function shortName(name: string): string {
  return name.split(".").slice(3).join(".");
}
