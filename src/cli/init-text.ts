/** The text of a first uas.yaml. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageFolder } from "../core/package.ts";
import { credentialName } from "./init-credentials.ts";
import type { NewModels } from "./price-import/new-models.ts";
import { newModelsYaml } from "./price-import/new-models-yaml.ts";

/** `version` and `vendors`. @param names presets, which are the names of the vendors too */
export function vendorsText(names: readonly string[]): string {
  const lines = names.map(
    (name) => `  ${name}: { preset: ${name}, api_key: "\${env:${credentialName(name)}}" }\n`,
  );
  return `version: 1\nvendors:\n${lines.join("")}`;
}

/** The whole file. A model that two vendors have goes to the first of them. */
export function configText(names: readonly string[], found: readonly NewModels[]): string {
  const seen = new Set<string>();
  const parts = found.map((each) => {
    const models = each.models.filter(({ name }) => !seen.has(name));
    for (const { name } of models) seen.add(name);
    const [head = "", lines = ""] = newModelsYaml({ ...each, models }, Date.now()).split(
      /^models:.*\n/m,
    );
    return models.length === 0 ? "" : `${head.trimEnd().replace(/^/gm, "  ")}\n${lines}`;
  });
  const models = seen.size === 0 ? "models: {}\n" : `models:\n${parts.join("")}`;
  return `${schemaLine()}${vendorsText(names)}${models}`;
}

/** The line that lets editors complete and check keys; empty if the schema is not installed. */
function schemaLine(): string {
  const file = join(packageFolder, "docs/reference/uas-schema.json");
  return existsSync(file) ? `# yaml-language-server: $schema=${file}\n` : "";
}
