/** Generates client packages from a descriptor: for TypeScript (Connect), Python and Go. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readContract } from "../../src/contract/contract.ts";

/** Where a client comes from and goes to. */
export interface ClientOptions {
  /** The descriptor: a file with a `FileDescriptorSet`. */
  readonly descriptor: string;
  /** The folder of the package. It is emptied. */
  readonly folder: string;
  readonly version: string;
  /** The module path of the Go package. */
  readonly goModule: string;
}

/** A language that clients are generated for. */
export interface Language {
  readonly name: "TypeScript" | "Python" | "Go";
  /**
   * Returns the tools missing on this machine, in one line; undefined if there are none.
   */
  findMissing(): string | undefined;
  generate(options: ClientOptions): void;
}

const root = join(import.meta.dirname, "../..");
const binaries = join(root, "node_modules/.bin");

/**
 * The module path in the contract's `go_package`. It suits a `replace` directive; published clients
 * need a host.
 */
export const defaultGoModule = "uas-gateway/client";

/** Where Debian's packages have Go libraries, for machines that reach no module proxy. */
export const debianGoPath = "/usr/share/gocode";

/** All languages. */
export const languages: readonly Language[] = [
  { name: "TypeScript", findMissing: () => undefined, generate: generateTypeScript },
  { name: "Python", findMissing: findMissingPython, generate: generatePython },
  { name: "Go", findMissing: findMissingGo, generate: generateGo },
];

function generateTypeScript({ descriptor, folder, version }: ClientOptions): void {
  empty(folder);
  const plugin = {
    local: join(binaries, "protoc-gen-es"),
    out: folder,
    opt: ["target=js+dts", "import_extension=js"],
  };
  runBuf(descriptor, { version: "v2", plugins: [plugin] });
  const own = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    dependencies: Record<string, string>;
  };
  const library = (name: string): string => `^${own.dependencies[name]}`;
  writeJson(join(folder, "package.json"), {
    name: "uas-gateway-client",
    version,
    description: "Client of UAS Gateway, for Connect and gRPC",
    type: "module",
    exports: { "./*": { types: "./uas/*_pb.d.ts", default: "./uas/*_pb.js" } },
    dependencies: { "@bufbuild/protobuf": library("@bufbuild/protobuf") },
    peerDependencies: { "@connectrpc/connect": library("@connectrpc/connect") },
  });
}

/** The packages that Python clients are generated with. */
const grpcTools = "grpcio-tools==1.84.0";

/** The folder of the virtual environment that generates Python clients. */
const pythonTools = join(root, "dist/clients/.python-tools");

function findMissingPython(): string | undefined {
  if (!succeeds("python3", ["-m", "venv", "--help"])) return "there is no python3 with venv";
  if (succeeds(join(pythonTools, "bin/python"), ["-m", "grpc_tools.protoc", "--version"])) {
    return undefined;
  }
  mkdirSync(pythonTools, { recursive: true });
  const isReady =
    succeeds("python3", ["-m", "venv", pythonTools]) &&
    succeeds(join(pythonTools, "bin/pip"), ["install", "--quiet", "--retries", "0", grpcTools]);
  return isReady ? undefined : `pip cannot install ${grpcTools}`;
}

function generatePython({ descriptor, folder, version }: ClientOptions): void {
  empty(folder);
  const files = readContract(readFileSync(descriptor)).files.map(({ name }) => `${name}.proto`);
  const outputs = ["--python_out", "--pyi_out", "--grpc_python_out"].map(
    (out) => `${out}=${folder}`,
  );
  const args = [`--descriptor_set_in=${descriptor}`, ...outputs, ...files];
  runProgram(join(pythonTools, "bin/python"), ["-m", "grpc_tools.protoc", ...args]);
  writeFileSync(
    join(folder, "pyproject.toml"),
    `[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "uas-gateway-client"
version = "${version}"
description = "gRPC client of UAS Gateway"
requires-python = ">=3.10"
dependencies = ["grpcio>=${grpcTools.split("==")[1]}", "protobuf>=7"]

[tool.setuptools.packages.find]
include = ["uas*"]

[tool.setuptools.package-data]
"*" = ["*.pyi"]
`,
  );
}

function findMissingGo(): string | undefined {
  for (const program of ["go", "protoc-gen-go", "protoc-gen-go-grpc"]) {
    if (!succeeds(program, [program === "go" ? "version" : "--version"])) {
      return `there is no ${program}`;
    }
  }
  const isInstalled = goFiles.every((file) => existsSync(join(debianGoPath, "src", file)));
  if (isInstalled || succeeds("go", ["list", "-m", "google.golang.org/grpc@latest"])) {
    return undefined;
  }
  return "go reaches no module proxy, and Debian's golang-google-grpc-dev and golang-github-golang-protobuf-1-5-dev are not installed";
}

/** Files of the libraries that clients need, in the versions that can be used together. */
const goFiles = [
  "google.golang.org/grpc/clientconn.go",
  "github.com/golang/protobuf/proto/wire.go",
];

function generateGo({ descriptor, folder, goModule }: ClientOptions): void {
  empty(folder);
  const plugins = ["protoc-gen-go", "protoc-gen-go-grpc"].map((local) => {
    return { local, out: folder, opt: [`module=${goModule}`] };
  });
  const override = [{ file_option: "go_package_prefix", value: goModule }];
  const managed = goModule === defaultGoModule ? {} : { managed: { enabled: true, override } };
  runBuf(descriptor, { version: "v2", ...managed, plugins });
  writeFileSync(join(folder, "go.mod"), `module ${goModule}\n\ngo 1.19\n`);
  // With a module proxy, the client gets the newest libraries. Without one, those of Debian's
  // packages serve.
  const env = { ...process.env, GOFLAGS: "-mod=mod" };
  spawnSync("go", ["mod", "tidy"], { cwd: folder, env, stdio: "ignore" });
}

function empty(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

function runBuf(descriptor: string, template: object): void {
  runProgram(join(binaries, "buf"), [
    "generate",
    `${descriptor}#format=binpb`,
    "--template",
    JSON.stringify(template),
  ]);
}

function runProgram(program: string, args: readonly string[]): void {
  // The generators of npm are scripts that need the project's own Node.js.
  const env = { ...process.env, PATH: `${binaries}:${process.env["PATH"]}` };
  execFileSync(program, args, { cwd: root, env, stdio: ["ignore", "inherit", "inherit"] });
}

function succeeds(program: string, args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
