/** The tools that clients offer, and what they answer. */

/** The one member of their arguments. */
export const placeSchema = {
  type: "object",
  properties: { city: { type: "string", description: "A city" } },
  required: ["city"],
  additionalProperties: false,
} as const;

/** A tool that runs here. */
export interface LocalTool {
  readonly name: string;
  readonly description: string;
  readonly run: (input: { readonly city: string }) => string;
}

/** Called by name, or both at once. */
export const localTools: readonly LocalTool[] = [
  { name: "weather", description: "Tells the weather", run: ({ city }) => `18 degrees in ${city}` },
  { name: "clock", description: "Tells the time", run: ({ city }) => `12:00 in ${city}` },
];

/**
 * Runs a tool that was called, its arguments as JSON text. Throws if there is none, or they do not
 * fit.
 */
export function runTool(name: string, args: string | { readonly city: string }): string {
  const tool = localTools.find((one) => one.name === name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const input = typeof args === "string" ? (JSON.parse(args) as { city: string }) : args;
  if (typeof input.city !== "string") throw new Error(`arguments ${JSON.stringify(args)}`);
  return tool.run(input);
}

/** The most rounds of a loop that is written here. */
export const roundsMax = 5;
