/**
 * The clients of `npm run clients`, generated from the descriptor, and the examples that use them
 * against a gateway. Where a language's tools are missing, its tests are skipped, with the reason
 * in their names.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { debianGoPath, defaultGoModule, languages } from "../../../tools/clients/generate.ts";
import { type DemoGateway, startDemoGateway } from "../../docs/demo-gateway.ts";
import { type Environment, type Run, runProgram } from "./run-program.ts";

const root = join(import.meta.dirname, "../../..");
const descriptor = process.env["UAS_DESCRIPTOR"] ?? join(root, "proto/baseline.binpb");

let folder: string;
let gateway: DemoGateway;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "uas-clients-"));
  gateway = await startDemoGateway(folder);
});
afterAll(async () => {
  await gateway?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the example of a language with the client in `client`. */
const runExample: Readonly<
  Record<(typeof languages)[number]["name"], (client: string, env: Environment) => Promise<Run>>
> = {
  async TypeScript(client, env) {
    const cwd = copyExample("grpc-typescript");
    mkdirSync(join(cwd, "node_modules"));
    cpSync(client, join(cwd, "node_modules/uas-gateway-client"), { recursive: true });
    for (const name of ["@bufbuild", "@connectrpc"]) {
      symlinkSync(join(root, "node_modules", name), join(cwd, "node_modules", name));
    }
    return await runProgram(process.execPath, ["main.ts"], { cwd, env });
  },
  async Python(client, env) {
    const cwd = copyExample("grpc-python");
    const made = await runProgram("python3", ["-m", "venv", "venv"], { cwd });
    expect(made).toMatchObject({ code: 0 });
    const installed = await runProgram("venv/bin/pip", ["install", "--quiet", client], { cwd });
    expect(installed).toMatchObject({ code: 0 });
    return await runProgram("venv/bin/python", ["main.py"], { cwd, env });
  },
  async Go(client, env) {
    const cwd = copyExample("grpc-go");
    const module = join(cwd, "go-path/src", defaultGoModule);
    cpSync(client, module, { recursive: true });
    const replace = ["mod", "edit", `-replace=${defaultGoModule}=${module}`];
    expect(await runProgram("go", replace, { cwd })).toMatchObject({ code: 0 });
    const tidied = await runProgram("go", ["mod", "tidy"], { cwd });
    // Without a module proxy, Debian's packages serve, in the mode that knows no modules.
    const offline = { GO111MODULE: "off", GOPATH: `${join(cwd, "go-path")}:${debianGoPath}` };
    const mode = tidied.code === 0 ? {} : offline;
    return await runProgram("go", ["run", "main.go"], { cwd, env: { ...env, ...mode } });
  },
};

function copyExample(name: string): string {
  const cwd = join(folder, name);
  cpSync(join(root, "examples", name), cwd, { recursive: true });
  return cwd;
}

for (const language of languages) {
  const missing = language.findMissing();
  const reason = missing === undefined ? "" : ` (skipped: ${missing})`;
  test.skipIf(missing !== undefined)(
    `a generated client in ${language.name} lists models, streams text and reads errors${reason}`,
    async () => {
      const client = join(folder, `client-${language.name}`);
      language.generate({
        descriptor,
        folder: client,
        version: "0.0.0",
        goModule: defaultGoModule,
      });
      const { code, output } = await runExample[language.name](client, {
        UAS_API_KEY: gateway.env["UAS_API_KEY"],
        UAS_INTERNAL_URL: gateway.internalUrl,
        UAS_INTERNAL_ADDRESS: new URL(gateway.internalUrl).host,
      });
      expect(output).toContain("demo-chat");
      expect(output).toContain("Hello");
      expect(output).toContain("there is no model called none");
      expect(code).toBe(0);
    },
  );
}
