/**
 * Gives the console a separate host (`UAS_CONSOLE_URL`). The console then answers on that host
 * only, and everything else on the other hosts. So no vendor reply shares the origin of the
 * console.
 */
import type { IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Upgrades } from "./http-server.ts";

/** Routes of the console: its pages and RPCs, and the paths that browsers request automatically. */
const consoleRoute = /^\/(?:console(?:\/.*)?|favicon\.ico)?$/;

/** Probes answer on every host, because balancers choose one. */
const probes: ReadonlySet<string> = new Set(["/healthz", "/readyz"]);

/** The host of the console. */
export class ConsoleHost {
  /** With and without the default port, as clients may write either. */
  readonly #hosts: ReadonlySet<string>;

  /** @param consoleUrl an origin */
  constructor(consoleUrl: string) {
    const { host, hostname, port, protocol } = new URL(consoleUrl);
    this.#hosts = new Set([host, `${hostname}:${port || (protocol === "https:" ? 443 : 80)}`]);
  }

  #has(host: string): boolean {
    return this.#hosts.has(host.trim().toLowerCase());
  }

  /**
   * Whether a request may be for this host. The proxy that names another host may not be a trusted
   * one.
   */
  mayBe({ headers }: Pick<IncomingMessage, "headers">): boolean {
    const forwarded = String(headers["x-forwarded-host"] ?? "").split(",");
    return [headers.host ?? "", ...forwarded].some((host) => this.#has(host));
  }

  /** Upgrades without those on this host, which has no API. */
  withoutUpgrades(upgrades: Upgrades): Upgrades {
    return {
      accepts: (request) => !this.mayBe(request) && upgrades.accepts(request),
      onUpgrade: (request, socket, head) => upgrades.onUpgrade(request, socket, head),
    };
  }

  /**
   * Separates the hosts for all routes that are registered afterwards. It checks the matched route,
   * because a path has several spellings.
   *
   * @param refuse replies that the path does not exist
   */
  separate(
    app: FastifyInstance,
    refuse: (request: FastifyRequest, reply: FastifyReply) => FastifyReply,
  ): void {
    app.addHook("onRequest", async (request, reply) => {
      const { url = "" } = request.routeOptions;
      if (probes.has(url) || this.#has(request.host) === consoleRoute.test(url)) return undefined;
      return refuse(request, reply);
    });
  }
}
