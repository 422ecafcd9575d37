/** The reference of known vendors. */
import { modelTypeWord } from "../../src/config/kinds.ts";
import { presets } from "../../src/config/presets.ts";
import { code, table } from "./table.ts";

/** The page of all presets, in the order of the code. */
export function presetsPage(): string {
  const rows = [...presets].map(([name, preset]) => {
    const { baseUrl, limitParameter, modelTypes, needsApiKey, quirks, source } = preset;
    const differences = Object.entries(quirks ?? {}).map(([quirk, value]) =>
      code(`${snake(quirk)}: ${value}`),
    );
    return [
      `[${code(name)}](${source})`,
      baseUrl === "" ? "yours" : code(baseUrl),
      limitParameter === undefined ? "" : code(limitParameter),
      modelTypes.map((type) => code(modelTypeWord(type))).join(", "),
      needsApiKey ? "required" : "optional",
      differences.join(", "),
    ];
  });
  return `# Presets of vendors

Here you find the vendors that \`preset:\` of \`uas.yaml\` [knows](../configuration.md#add-a-vendor), each with a link to the
documentation that its values were taken from. Generated from \`src/config/presets.ts\`.

${table(["preset", "address", "limit parameter", "models", "credential", "quirks"], rows)}`;
}

/** A name as the configuration spells it. */
function snake(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
