/** Which REST paths carry an element of the contract in their bodies or parameters. */
import { type DescMessage, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { Dialect, route } from "../../gen/uas/http/v1/http_pb.ts";
import type { Contract } from "./contract.ts";
import { methodName, routeName } from "./elements.ts";

/** Names of REST paths, by the name of an RPC, message or enum. */
export type Carriers = ReadonlyMap<string, readonly string[]>;

/**
 * Finds the paths of each RPC, and of each type those whose JSON is made from it: paths of the
 * platform's own style. Other styles carry bytes, whose form the contract does not define.
 */
export function carriersOf({ files }: Contract): Carriers {
  const carriers = new Map<string, Set<string>>();
  const add = (name: string, path: string): void => {
    carriers.set(name, (carriers.get(name) ?? new Set()).add(path));
  };
  for (const method of files.flatMap(({ services }) => services).flatMap((each) => each.methods)) {
    for (const { name, isPlatform } of pathsOf(method)) {
      add(methodName(method), name);
      if (!isPlatform) continue;
      for (const type of [...typesOf(method.input), ...typesOf(method.output)]) add(type, name);
    }
  }
  return new Map([...carriers].map(([name, paths]) => [name, [...paths]]));
}

function pathsOf(method: DescMethod): { readonly name: string; readonly isPlatform: boolean }[] {
  const routes = hasOption(method, route) ? getOption(method, route) : [];
  return routes.map((each) => {
    return { name: routeName(each), isPlatform: each.dialect === Dialect.PLATFORM };
  });
}

/** The names of all messages and enums that a message consists of, its own included. */
export function typesOf(message: DescMessage, found = new Set<string>()): ReadonlySet<string> {
  if (found.has(message.typeName)) return found;
  found.add(message.typeName);
  for (const field of message.fields) {
    if (field.enum) found.add(field.enum.typeName);
    if (field.message) typesOf(field.message, found);
  }
  return found;
}
