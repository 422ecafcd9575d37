/** The definition of a tool: read from a form, with what is wrong in it. */
import type { FunctionTool } from "./conversation.ts";

/** What the form says. */
export interface ToolForm {
  readonly name: string;
  readonly description: string;
  /** The JSON Schema of the arguments. */
  readonly parameters: string;
}

/** What the form of a new tool begins with: an example is quicker changed than remembered. */
export const newTool: ToolForm = {
  name: "",
  description: "",
  parameters: JSON.stringify(
    {
      type: "object",
      properties: { city: { type: "string", description: "For example Berlin" } },
      required: ["city"],
    },
    undefined,
    2,
  ),
};

/** The form of a tool that there is. */
export function formOf({
  function: { name, description = "", parameters },
}: FunctionTool): ToolForm {
  return { name, description, parameters: JSON.stringify(parameters, undefined, 2) };
}

/** The tool that a form without faults describes. */
export function toolOf({ name, description, parameters }: ToolForm): FunctionTool {
  return {
    type: "function",
    function: {
      name: name.trim(),
      ...(description.trim() !== "" && { description: description.trim() }),
      parameters: JSON.parse(parameters) as object,
    },
  };
}

/** What may be wrong with a name: all vendors take the same. */
export function nameFault(
  name: string,
  others: readonly FunctionTool[],
): "empty" | "letters" | "taken" | undefined {
  if (name === "") return "empty";
  if (!/^[\w-]{1,64}$/.test(name)) return "letters";
  return others.some((other) => other.function.name === name) ? "taken" : undefined;
}
