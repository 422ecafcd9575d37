/** The reference of environment variables. */
import { variables } from "../../src/config/settings.ts";
import { code, table } from "./table.ts";

/** The page of all variables, in the order of the code. */
export function variablesPage(): string {
  const rows = Object.entries(variables).map(([name, { meaning, byDefault }]) => [
    code(name),
    meaning,
    byDefault,
  ]);
  return `# Environment variables

Here you find every variable that the gateway and its command line read. An empty variable counts as not set; an unknown
one that begins with \`UAS_\` causes a warning. \`uas.yaml\` may [refer to further ones](../configuration.md#secrets).
Generated from \`src/config/settings.ts\`.

${table(["variable", "meaning", "default"], rows)}`;
}
