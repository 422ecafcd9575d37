/**
 * Tools that take free text, for vendors that know only functions: such a tool becomes a function with one
 * string, `input`, and its calls are unwrapped on their way back.
 */

/** The JSON Schema of the function that stands for such a tool, as JSON. */
export const customInputSchema = JSON.stringify({
  type: "object",
  properties: { input: { type: "string" } },
  required: ["input"],
  additionalProperties: false,
});

/** The arguments of the function for a text, as JSON. */
export function wrapCustomInput(input: string): string {
  return JSON.stringify({ input });
}

/** The text of a call's arguments; the arguments themselves where the model wrote something else. */
export function unwrapCustomInput(args: string): string {
  try {
    const parsed = JSON.parse(args) as { input?: unknown } | null;
    return typeof parsed?.input === "string" ? parsed.input : args;
  } catch {
    return args;
  }
}
