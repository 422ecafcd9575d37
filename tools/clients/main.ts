/**
 * `npm run clients`: generates client packages into `dist/clients/`, from the descriptor of the
 * released contract, and tests each against a gateway. A language whose tools are missing is named
 * and left out.
 *
 * `-- --descriptor FILE` generates from another descriptor, `-- --go-module PATH` sets the module
 * path of the Go client.
 */
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { run } from "../run.ts";
import { defaultGoModule, languages } from "./generate.ts";

const root = join(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    descriptor: { type: "string", default: join(root, "proto/baseline.binpb") },
    "go-module": { type: "string", default: defaultGoModule },
  },
});
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
  version: string;
};

for (const language of languages) {
  const missing = language.findMissing();
  if (missing !== undefined) {
    process.stdout.write(`skip ${language.name}: ${missing}\n`);
    continue;
  }
  const folder = join(root, "dist/clients", language.name.toLowerCase());
  const descriptor = resolve(values.descriptor);
  language.generate({ descriptor, folder, version, goModule: values["go-module"] });
  process.stdout.write(`ok   ${language.name}: ${folder}\n`);
}
// The tests generate clients of their own, so that they do not depend on what this folder has.
process.env["UAS_DESCRIPTOR"] = resolve(values.descriptor);
process.exitCode = await run("vitest", ["run", "--project=nightly", "test/nightly/examples/grpc"]);
