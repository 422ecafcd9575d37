/**
 * Writes `gen/openapi.json` and `gen/llms.txt` from the contract: its route options, rules and
 * comments. Part of `npm run generate`, after `buf generate`. The first argument is the folder, by
 * default `gen`.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { routeTable } from "../../src/edge/rest/route-table.ts";
import { commentsOf } from "../../src/contract/comments.ts";
import { createDocuments } from "./document.ts";

const root = join(import.meta.dirname, "../..");
const buf = join(root, "node_modules/.bin/buf");
const built = execFileSync(buf, ["build", "-o", "-"], { cwd: root, maxBuffer: 2 ** 26 });
const contract = fromBinary(FileDescriptorSetSchema, built);
const services = [...createFileRegistry(contract)].filter((each) => each.kind === "service");
const { openapi, llms } = createDocuments(routeTable(services), commentsOf(contract.file));
const folder = process.argv[2] ?? join(root, "gen");
writeFileSync(join(folder, "openapi.json"), `${JSON.stringify(openapi, null, 2)}\n`);
writeFileSync(join(folder, "llms.txt"), llms);
