/**
 * Writes the pages of `docs/reference/` from the contract and the code, so that they cannot
 * disagree with either. Part of `npm run generate`. The first argument is the folder, by default
 * `docs/reference`.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { commandsPage } from "./commands.ts";
import { contractPages } from "./contract.ts";
import { limitsPage } from "./limits.ts";
import { metricsPage } from "./metrics.ts";
import { presetsPage } from "./presets.ts";
import { priceUnitsPage } from "./price-units.ts";
import { rulesPage } from "./rules.ts";
import { taskParametersPage } from "./task-parameters.ts";
import { configKeysPage, configSchemaFile } from "./uas-yaml.ts";
import { variablesPage } from "./variables.ts";

const root = join(import.meta.dirname, "../..");
const buf = join(root, "node_modules/.bin/buf");
const built = execFileSync(buf, ["build", "-o", "-"], { cwd: root, maxBuffer: 2 ** 26 });
const contract = contractPages(fromBinary(FileDescriptorSetSchema, built));
const pages = new Map([
  ["commands.md", await commandsPage()],
  ["environment.md", variablesPage()],
  ["limits.md", limitsPage()],
  ["metrics.md", metricsPage()],
  ["presets.md", presetsPage()],
  ["price-units.md", priceUnitsPage()],
  ["rules.md", rulesPage()],
  ["task-parameters.md", taskParametersPage()],
  ["uas-schema.json", configSchemaFile()],
  ["uas-yaml.md", configKeysPage()],
  ...contract,
]);
const folder = process.argv[2] ?? join(root, "docs/reference");
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
for (const [name, text] of pages) writeFileSync(join(folder, name), `${text.trim()}\n`);
