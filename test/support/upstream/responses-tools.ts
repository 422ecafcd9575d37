/** The tools of responses requests: flat, and strict unless they say otherwise. */
import { anything, flag, list, map, nullable, record, type Shape, tagged, text } from "./shape.ts";

const functionTool = record({
  type: text(),
  "name!": text({ min: 1, max: 128, pattern: /^[a-zA-Z0-9_.-]+$/ }),
  description: nullable(text()),
  parameters: nullable(map(anything)),
  strict: nullable(flag),
  allowed_callers: anything,
  async: anything,
  defer_loading: flag,
  output_schema: anything,
});

const customTool = record({
  type: text(),
  "name!": text(),
  description: text(),
  format: anything,
  defer_loading: flag,
});

/** A built-in tool of the vendor: its settings are not checked. */
const hosted: Shape = map(anything);

/** Any tool. */
export const responsesTool = tagged("type", {
  function: functionTool,
  custom: customTool,
  namespace: record({
    type: text(),
    "name!": text(),
    description: text(),
    "tools!": list(tagged("type", { function: functionTool, custom: customTool })),
  }),
  web_search: hosted,
  web_search_preview: hosted,
  file_search: hosted,
  mcp: hosted,
  code_interpreter: hosted,
  image_generation: hosted,
  computer: hosted,
  computer_use_preview: hosted,
  local_shell: hosted,
  shell: hosted,
  apply_patch: hosted,
  tool_search: hosted,
  programmatic_tool_calling: hosted,
});
