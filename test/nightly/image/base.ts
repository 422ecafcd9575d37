/** A base image for tests: a small Debian with the Node.js and the npm of this machine. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs buildah. @returns its output without the final line break */
export async function buildah(...args: readonly string[]): Promise<string> {
  return (await run("buildah", args)).stdout.trim();
}

/**
 * Makes the image from Debian's packages, since a registry of images may be out of reach.
 *
 * @param folder for files that are needed meanwhile
 */
export async function makeBase(name: string, folder: string): Promise<void> {
  const tree = join(folder, "debian.tar");
  const packages = "--include=ca-certificates,libatomic1";
  await run("mmdebstrap", ["--quiet", "--variant=minbase", packages, "bookworm", tree]);
  const container = await buildah("from", "scratch");
  try {
    await buildah("add", container, tree, "/");
    await buildah("copy", container, process.execPath, "/usr/local/bin/node");
    await buildah("copy", container, await npmFolder(), "/usr/local/lib/node_modules/npm");
    const link = ["ln", "-s", "../lib/node_modules/npm/bin/npm-cli.js", "/usr/local/bin/npm"];
    await buildah("run", "--isolation=chroot", container, "--", ...link);
    await trustCertificates(container, folder);
    await buildah("commit", "--quiet", container, name);
  } finally {
    await buildah("rm", container);
  }
}

/** The folder of the npm in `PATH`. */
async function npmFolder(): Promise<string> {
  const { stdout } = await run("sh", ["-c", 'readlink -f "$(command -v npm)"']);
  return dirname(dirname(stdout.trim()));
}

/** Lets npm trust the certificates that this machine adds, if it does. */
async function trustCertificates(container: string, folder: string): Promise<void> {
  const file = process.env["NODE_EXTRA_CA_CERTS"];
  if (file === undefined) return;
  const settings = join(folder, "npmrc");
  writeFileSync(settings, "cafile=/etc/ssl/certs/machine.crt\n");
  await buildah("copy", container, file, "/etc/ssl/certs/machine.crt");
  await buildah("copy", container, settings, "/usr/local/etc/npmrc");
}
