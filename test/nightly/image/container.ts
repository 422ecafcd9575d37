/** Containers of the image under podman: as an ordinary user, on a read-only file system. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { until } from "../../behaviour/lifecycle/process.ts";

const run = promisify(execFile);

/** Options before podman's command, by the runtimes that machines have. */
const runtimes = [[], ["--runtime=runc", "--cgroup-manager=cgroupfs"]] as const;

/** Options of every container. A machine may allow no more open files and processes than these. */
const limits = ["--ulimit=nofile=8192:8192", "--ulimit=nproc=4096:4096", "--no-healthcheck"];
const protection = ["--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"];

/** The image, and everything that its containers get. */
export interface Setup {
  readonly image: string;
  /** The folder with `uas.yaml`. */
  readonly config: string;
  /** The volume of the data folder. */
  readonly volume: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Runs containers of one image. */
export class Containers {
  readonly #setup: Setup;
  readonly #before: readonly string[];

  private constructor(setup: Setup, before: readonly string[]) {
    this.#setup = setup;
    this.#before = before;
  }

  /** @throws the last error of podman if no runtime can run the image */
  static async open(setup: Setup): Promise<Containers> {
    const errors: unknown[] = [];
    for (const before of runtimes) {
      const containers = new Containers(setup, before);
      try {
        await containers.once("--version");
        return containers;
      } catch (error) {
        errors.push(error);
      }
    }
    throw errors.at(-1);
  }

  async podman(...args: readonly string[]): Promise<string> {
    const { stdout } = await run("podman", [...this.#before, ...args], { maxBuffer: 1e8 });
    return stdout.trim();
  }

  /** Runs a command of the gateway in a new container. @returns its standard output */
  once(...args: readonly string[]): Promise<string> {
    return this.podman("run", "--rm", ...this.#options(), this.#setup.image, ...args);
  }

  /** Starts a gateway. @returns the id of its container */
  start(): Promise<string> {
    return this.podman("run", "--detach", ...this.#options(), this.#setup.image);
  }

  /** The addresses of a gateway, once it listens. */
  async addresses(id: string): Promise<{ listenUrl: string; internalUrl: string }> {
    return until("the container listens", async () => {
      const log = await this.podman("logs", id);
      const line = log.split("\n").find((each) => each.includes('"msg":"listening"'));
      if (line !== undefined) return JSON.parse(line) as { listenUrl: string; internalUrl: string };
      const state = await this.podman("inspect", "--format={{.State.Status}}", id);
      if (state === "exited") throw new Error(`the container has ended: ${log}`);
      return undefined;
    });
  }

  #options(): string[] {
    const { config, volume, env } = this.#setup;
    const variables = Object.entries(env).map(([name, value]) => `--env=${name}=${value}`);
    const mounts = [`${config}:/etc/uas-gateway:ro`, `${volume}:/var/lib/uas-gateway`];
    const volumes = mounts.map((mount) => `--volume=${mount}`);
    return ["--network=host", "--tmpfs=/tmp", ...limits, ...protection, ...variables, ...volumes];
  }
}
