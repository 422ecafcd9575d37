/**
 * Names of tools on their way to a vendor whose style allows fewer of them, and back. No state is needed:
 * the same name always becomes the same other name, and the tools of the request tell which one was meant.
 */
import { createHash } from "node:crypto";

/** What a style allows in the names of its tools. */
export interface ToolNameLimits {
  /** The most characters: at least 64. */
  readonly charsMax: number;
  /** The only characters that may stand in it: ASCII letters, digits, `_`, `-`, and where this is set `.`. */
  readonly dots: boolean;
}

/** How the contract names a tool. */
export interface ToolIdentity {
  readonly name: string;
  /** Empty if there is none. */
  readonly namespace: string;
}

/**
 * What writes a style's names of tools: a name that fits stays as it is; any other becomes its first 55
 * characters, with `_` for what is not allowed, `_`, and 8 hexadecimal digits of its SHA-256. A namespace
 * stands before the name.
 */
export function toolNameFor(limits: ToolNameLimits): (tool: ToolIdentity) => string {
  const legal = limits.dots ? /^[\w.-]+$/ : /^[\w-]+$/;
  return (tool) => {
    const name = joined(tool);
    return name.length <= limits.charsMax && legal.test(name) ? name : shortened(name);
  };
}

/** Finds the tool that a vendor's call means; `undefined` if none of `tools` has that name. */
export function restoreToolName<Tool extends ToolIdentity>(
  tools: readonly Tool[],
  wireName: string,
): Tool | undefined {
  const exact = tools.find((tool) => joined(tool) === wireName);
  if (exact !== undefined || !/_[0-9a-f]{8}$/.test(wireName)) return exact;
  return tools.find((tool) => shortened(joined(tool)) === wireName);
}

function joined({ name, namespace }: ToolIdentity): string {
  return namespace === "" ? name : `${namespace}__${name}`;
}

function shortened(name: string): string {
  const digest = createHash("sha256").update(name).digest("hex");
  return `${name.slice(0, 55).replaceAll(/[^\w-]/g, "_")}_${digest.slice(0, 8)}`;
}
