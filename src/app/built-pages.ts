/**
 * Finds the built pages, or builds them. They are built once from each state of their sources, into
 * a folder that is named after it. So a server never serves pages that do not fit its contract, and
 * no manual step is needed.
 */
import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { existsSync, globSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { isCompiled, packageFolder } from "../core/package.ts";
import type { PageFile, Pages } from "../edge/rest/pages.ts";

/** The folder of the project: the built pages are in its `dist/console`. */
const project = packageFolder;

/** The pages that `npm pack` put into the package. */
const packedPages = join(project, "dist", "pages");

/** The builder: a development dependency. */
const vite = join(project, "node_modules", "vite", "bin", "vite.js");

/** The sources of the pages; the lock file represents the packages. */
const sources = ["console/**/*", "gen/**/*.ts", "package-lock.json"];

/** There are no built pages, and the builder is not installed. */
export class NoBuilder extends Error {}

/**
 * Whether there are built pages, or they can be built.
 *
 * @throws Error if the folder of the project cannot be read
 */
export async function canServePages(): Promise<boolean> {
  return (
    isCompiled ||
    existsSync(vite) ||
    existsSync(join(project, "dist", "console", await hashOf(sources)))
  );
}

/**
 * Resolves with the folder of the built pages. Builds them if they are missing or outdated, which
 * takes about three seconds in a separate process.
 *
 * @param signal aborts the build. Never by default
 * @throws NoBuilder if they must be built, and the builder is not installed
 * @throws Error if the build fails, with the output of the builder
 */
export async function buildPages(signal?: AbortSignal): Promise<string> {
  if (isCompiled) return packedPages;
  const parent = join(project, "dist", "console");
  const name = await hashOf(sources);
  const folder = join(parent, name);
  await mkdir(parent, { recursive: true });
  if ((await readdir(parent)).includes(name)) return folder;
  if (!existsSync(vite)) throw new NoBuilder("the builder of the console's pages is not installed");
  // Not a temporary folder, which only its owner can read: the gateway may run as another user than
  // the builder.
  const draft = join(parent, `.draft-${randomUUID()}`);
  await mkdir(draft);
  try {
    await runVite(draft, signal);
    await compressPages(draft);
    await rename(draft, folder).catch(async (error: NodeJS.ErrnoException) => {
      // Another process was faster; its pages are the same.
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
  const old = (await readdir(parent)).filter((each) => each !== name && !each.startsWith("."));
  for (const each of old) await rm(join(parent, each), { recursive: true, force: true });
  return folder;
}

/** Reads the built pages into memory, compressed too. About 2 MB. */
export async function readPages(folder: string): Promise<Pages> {
  const paths = new Set(await filesIn(folder));
  return new Map(
    await Promise.all(
      [...paths]
        .filter((path) => !path.endsWith(compressedEnding))
        .map(async (path): Promise<[string, PageFile]> => {
          const compressed = `${path}${compressedEnding}`;
          return [
            path.slice(folder.length + 1).replaceAll("\\", "/"),
            {
              contentType: contentTypes[extname(path)] ?? "application/octet-stream",
              bytes: await readFile(path),
              gzip: paths.has(compressed) ? await readFile(compressed) : undefined,
            },
          ];
        }),
    ),
  );
}

/** The suffix of a compressed page's name. */
const compressedEnding = ".gz";

/**
 * Writes a compressed copy of each page that it makes smaller by a tenth. Done with the build: at
 * each start it took 60 ms of CPU.
 */
async function compressPages(folder: string): Promise<void> {
  const compressAndWrite = async (path: string): Promise<void> => {
    const bytes = await readFile(path);
    const compressed = await compress(bytes, { level: 9 });
    if (compressed.length < bytes.length * 0.9)
      await writeFile(`${path}${compressedEnding}`, compressed);
  };
  await Promise.all((await filesIn(folder)).map(compressAndWrite));
}

/** The paths of all files in a folder and the folders below it. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

const compress = promisify(gzip);

const contentTypes: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

async function hashOf(globs: readonly string[]): Promise<string> {
  const hash = createHash("sha256");
  const files = globSync([...globs], { cwd: project, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
  for (const [index, content] of (
    await Promise.all(files.map((file) => readFile(file)))
  ).entries()) {
    hash.update(`${files[index]?.slice(project.length)}\0${content.length}\0`).update(content);
  }
  return hash.digest("hex").slice(0, 16);
}

/** In a separate process: the builder would block this one and keep 200 MB of memory. */
async function runVite(outDir: string, signal: AbortSignal | undefined): Promise<void> {
  const config = join(project, "console", "vite-config.ts");
  const args = [vite, "build", "--config", config, "--outDir", outDir, "--logLevel", "warn"];
  const child = spawn(process.execPath, args, {
    cwd: project,
    stdio: ["ignore", "pipe", "pipe"],
    // If this process runs a test, React would be the development build otherwise.
    env: { ...process.env, NODE_ENV: "production" },
    ...(signal && { signal }),
  });
  const said: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk: Buffer) => void said.push(chunk));
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  if (code === 0) return;
  throw new Error(`the console's pages were not built: ${Buffer.concat(said).toString().trim()}`);
}
