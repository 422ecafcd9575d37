/**
 * Shortens names of tools for a vendor whose style allows fewer characters, and restores them. No
 * state is needed: a name always becomes the same other name, and the request's tools identify the
 * original.
 */
import { createHash } from "node:crypto";

/** Limits of a style on the names of its tools. */
export interface ToolNameLimits {
  /** The most characters: at least 64. */
  readonly charsMax: number;
  /** Allowed characters: ASCII letters, digits, `_`, `-`, and `.` if this is set. */
  readonly dots: boolean;
}

/** A tool's name in the contract. */
export interface ToolIdentity {
  readonly name: string;
  /** Empty if there is none. */
  readonly namespace: string;
}

/**
 * Creates a function that writes a style's tool names. A name within the limits stays unchanged.
 * Any other becomes its first 55 characters, with `_` for characters that are not allowed, `_`, and
 * 8 hexadecimal digits of its SHA-256. A namespace precedes the name.
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
