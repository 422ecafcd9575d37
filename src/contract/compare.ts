/** The changes between two contracts, and whether they break clients of the older one. */
import { Access } from "../../gen/uas/http/v1/http_pb.ts";
import { type Carriers, carriersOf } from "./carriers.ts";
import type { Contract } from "./contract.ts";
import { type Element, elementKinds, elementsOf } from "./elements.ts";
import { isRule, isTighter } from "./rules.ts";

/** One change of a contract. */
export interface Change {
  readonly action: "added" | "removed" | "changed" | "deprecated" | "described";
  /** As it is now; of removed elements as it was. */
  readonly element: Element;
  /** Whether clients of the older contract can fail because of it. */
  readonly isBreaking: boolean;
  /** The property that changed, if the action is `changed`. */
  readonly property?: Property;
  /** The REST paths that carry the element. */
  readonly paths: readonly string[];
}

/** A property that changed. */
export interface Property {
  readonly name: string;
  /** Empty: it had no value. */
  readonly before: string;
  /** Empty: it has no value. */
  readonly after: string;
}

/**
 * Lists the changes from an older contract to a newer one, in the order of {@link elementKinds} and
 * names.
 */
export function compareContracts(older: Contract, newer: Contract): Change[] {
  const [before, after] = [elementsOf(older), elementsOf(newer)];
  const [pathsBefore, pathsNow] = [carriersOf(older), carriersOf(newer)];
  const removed = [...before.values()].flatMap((element) => {
    if (after.has(element.name) || isGone(element.owner, before, after)) return [];
    const paths = pathsOf(element, pathsBefore);
    return [{ action: "removed", element, isBreaking: true, paths } satisfies Change];
  });
  const others = [...after.values()].flatMap((element): Change[] => {
    const paths = pathsOf(element, pathsNow);
    const former = before.get(element.name);
    if (former !== undefined) return changesOf(former, element, paths);
    if (isGone(element.owner, after, before)) return [];
    return [{ action: "added", element, isBreaking: isDemanded(element), paths }];
  });
  const rank = ({ element }: Change): number => elementKinds.indexOf(element.kind);
  return [...removed, ...others].toSorted(
    (one, other) => rank(one) - rank(other) || (one.element.name < other.element.name ? -1 : 1),
  );
}

/** Whether an owner is in one contract but not in the other: then its parts need no mention. */
function isGone(
  owner: string | undefined,
  here: ReadonlyMap<string, Element>,
  there: ReadonlyMap<string, Element>,
): boolean {
  return owner !== undefined && here.has(owner) && !there.has(owner);
}

/** Whether a new element is a field that requests must have: those of older clients do not. */
function isDemanded({ facts }: Element): boolean {
  return facts.get("rule required") === "yes";
}

function pathsOf({ kind, name, owner }: Element, carriers: Carriers): readonly string[] {
  if (kind === "REST path") return [name];
  return carriers.get(kind === "field" || kind === "enum value" ? (owner ?? "") : name) ?? [];
}

function changesOf(former: Element, element: Element, paths: readonly string[]): Change[] {
  const changes: Change[] = [];
  for (const name of new Set([...former.facts.keys(), ...element.facts.keys()])) {
    const [before, after] = [former.facts.get(name), element.facts.get(name)];
    if (before === after) continue;
    const property = { name, before: before ?? "", after: after ?? "" };
    const isBreaking = breaks(name, before, after);
    changes.push({ action: "changed", element, isBreaking, property, paths });
  }
  if (former.kind !== element.kind) {
    const property = { name: "kind", before: former.kind, after: element.kind };
    changes.push({ action: "changed", element, isBreaking: true, property, paths });
  }
  if (element.deprecation !== undefined && former.deprecation === undefined) {
    changes.push({ action: "deprecated", element, isBreaking: false, paths });
  }
  if (element.comment !== former.comment) {
    changes.push({ action: "described", element, isBreaking: false, paths });
  }
  return changes;
}

/** Properties whose changes are always compatible. */
const harmless: ReadonlySet<string> = new Set(["side effects"]);

function breaks(name: string, before: string | undefined, after: string | undefined): boolean {
  if (isRule(name)) return isTighter(name, before, after);
  if (name === "access") return !isWider(before ?? "", after ?? "");
  return !harmless.has(name);
}

/** Callers who may use an RPC, by its access. */
const callers: Readonly<Record<keyof typeof Access, readonly string[]>> = {
  UNSPECIFIED: [],
  PUBLIC: ["anyone", "key", "session", "operator"],
  KEY: ["key"],
  SESSION: ["session", "operator"],
  OPERATOR: ["operator"],
  CUSTOMER: ["key", "session", "operator"],
};

/** Whether everyone who could call an RPC still can. */
function isWider(before: string, after: string): boolean {
  const now = callers[after as keyof typeof Access] ?? [];
  return (callers[before as keyof typeof Access] ?? []).every((caller) => now.includes(caller));
}
