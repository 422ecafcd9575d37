import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ModelType } from "../../../gen/uas/inference/v1/model_pb.ts";
import type { Config } from "../../../src/config/config.ts";
import type { ServedKinds } from "../../../src/config/kinds.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { ConfigError } from "../../../src/config/problems.ts";

const text = [ModelType.TEXT];

/** Kinds of a version that serves two. */
export const servedKinds: ServedKinds = new Map([
  [
    "demo",
    { dialects: ["chat-completions"], modelTypes: text, needsBaseUrl: false, needsApiKey: false },
  ],
  [
    "openai-compatible",
    { dialects: ["chat-completions"], modelTypes: text, needsBaseUrl: true, needsApiKey: false },
  ],
]);

/** Kinds of a version that serves all. */
export const allKinds: ServedKinds = new Map(
  ["openai", "openai-compatible", "anthropic", "gemini", "replicate", "dashscope", "fal"].map(
    (kind) => [
      kind,
      {
        dialects: ["chat-completions", "responses", "messages", "gemini"],
        modelTypes: [ModelType.TEXT, ModelType.IMAGE, ModelType.VIDEO, ModelType.AUDIO],
        needsBaseUrl: true,
        needsApiKey: kind !== "openai-compatible",
        native: {},
      },
    ],
  ),
);

/** A separate folder for one test; removed at its end. */
export function withFolder<Result>(use: (folder: string) => Result): Result {
  const folder = mkdtempSync(join(tmpdir(), "uas-config-"));
  try {
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface TestOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly kinds?: ServedKinds;
  readonly unresolved?: "placeholder";
  /** More files of the folder, by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Loads a text as `uas.yaml` of a fresh folder. */
export function loadText(yaml: string | Uint8Array, options: TestOptions = {}): Config {
  const { env = {}, kinds = servedKinds, unresolved, files = {} } = options;
  return withFolder((cwd) => {
    for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
    writeFileSync(join(cwd, "uas.yaml"), yaml);
    return loadConfig({ env, cwd, kinds, unresolved: unresolved ?? "refuse" });
  });
}

/** The problems of a text; empty if it is valid. */
export function problemsOf(
  yaml: string | Uint8Array,
  options: TestOptions = {},
): readonly string[] {
  try {
    loadText(yaml, options);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}
