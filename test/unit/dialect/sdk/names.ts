/** Reads the names in the types of the official SDKs, by TypeScript's own checker. */
import { join } from "node:path";
import { API, type Checker, type Type } from "typescript/unstable/sync";

/** The names in a type and in all types below it. */
export class TypeNames {
  /** Names of its direct members. */
  readonly members = new Set<string>();
  /** The names of members below them. */
  readonly nested = new Set<string>();
  /** Values of its direct members called `type`. */
  readonly ownTypes = new Set<string>();
  /** The values of all members called `type`: the types of tools, parts, blocks and items. */
  readonly types = new Set<string>();
  /** All words that values may be. */
  readonly words = new Set<string>();
  readonly #seen = new Set<number>();
  readonly #checker: Checker;

  constructor(checker: Checker) {
    this.#checker = checker;
  }

  /** Adds the names in `type`. @param path the members that lead to it */
  add(type: Type, path: readonly string[] = []): this {
    if (type.isUnionType() || type.isIntersectionType()) {
      for (const each of type.getTypes()) this.add(each, path);
    } else if (type.isStringLiteralType()) {
      this.words.add(type.value);
      if (path.at(-1) === "type") this.types.add(type.value);
      if (path.at(-1) === "type" && path.length === 1) this.ownTypes.add(type.value);
    } else if (type.isObjectType() && !this.#seen.has(type.id)) {
      this.#seen.add(type.id);
      this.#addObject(type, path);
    }
    return this;
  }

  #addObject(type: Type, path: readonly string[]): void {
    const checker = this.#checker;
    for (const { valueType } of checker.getIndexInfosOfType(type))
      this.add(valueType, [...path, "[]"]);
    // Their members are those of JavaScript.
    if (checker.isArrayLikeType(type) || type.isTupleType()) return;
    const symbols = checker.getPropertiesOfType(type);
    const types = checker.getTypeOfSymbol(symbols);
    for (const [at, { name }] of symbols.entries()) {
      (path.length === 0 ? this.members : this.nested).add(name);
      const of = types[at];
      if (of !== undefined) this.add(of, [...path, name]);
    }
  }
}

/** The names in each type that `types.ts` exports. */
export function readTypeNames(): ReadonlyMap<string, TypeNames> {
  const api = new API();
  try {
    const config = join(import.meta.dirname, "tsconfig.json");
    const project = api.updateSnapshot({ openProjects: [config] }).getProject(config);
    const file = project?.program.getSourceFile(join(import.meta.dirname, "types.ts"));
    const module = file && project?.checker.getSymbolAtLocation(file);
    if (project === undefined || module === undefined) throw new Error("types.ts was not read");
    const { checker } = project;
    return new Map(
      [...module.getExports().values()].map((symbol) => [
        symbol.name,
        new TypeNames(checker).add(checker.getDeclaredTypeOfSymbol(symbol)),
      ]),
    );
  } finally {
    api.close();
  }
}
