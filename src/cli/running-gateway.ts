/** The gateway that runs on this machine: its socket in the data folder answers as the operator. */
import { tokensOf } from "../config/settings.ts";
import { existsSync } from "node:fs";
import { get } from "node:http";
import type { Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Settings } from "../config/config.ts";
import { databaseHash, operatorSocket } from "../core/data-sockets.ts";
import type { Backend, CliContext } from "./context.ts";
import { CliError } from "./failure.ts";

/** A gateway that answers. */
interface RunningGateway extends Backend {
  /** The address of its console; undefined for a gateway elsewhere. */
  readonly consoleUrl?: string;
}

/** Maximum time a gateway may take to answer. */
const answerMs = 5_000;

/**
 * Connects to the gateway at `--gateway`, or to the one that runs on the data folder. Undefined if
 * there is none, or if it works on another database than `DATABASE_URL`.
 *
 * @throws CliError if this user may not use the gateway, or if it does not answer
 */
export async function connectGateway(
  { gatewayUrl }: Pick<CliContext, "gatewayUrl">,
  settings: Settings,
): Promise<RunningGateway | undefined> {
  return gatewayUrl === undefined ? connectHere(settings) : connectTo(gatewayUrl, settings);
}

/** Connects to the internal listener of a gateway. @throws CliError if there is no token */
function connectTo(baseUrl: string, { operatorToken }: Settings): RunningGateway {
  const [token] = tokensOf(operatorToken);
  if (token === undefined) {
    throw new CliError("--gateway needs the gateway's token: set UAS_OPERATOR_TOKEN to it");
  }
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const transport = createConnectTransport({
    baseUrl,
    httpVersion: "1.1",
    interceptors: [authorize],
  });
  return { transport, close: () => Promise.resolve() };
}

async function connectHere({
  dataDir,
  databaseUrl,
}: Settings): Promise<RunningGateway | undefined> {
  if (!existsSync(dataDir)) return undefined;
  const socketPath = operatorSocket(dataDir);
  const about = socketPath && (await readAbout(socketPath));
  if (about === undefined) return undefined;
  const { database, consoleUrl } = JSON.parse(about) as { database: string; consoleUrl: string };
  if (databaseUrl !== undefined && database !== databaseHash(databaseUrl)) return undefined;
  const transport = createConnectTransport({
    baseUrl: "http://gateway",
    httpVersion: "1.1",
    nodeOptions: { socketPath },
  });
  return { transport, consoleUrl, close: () => Promise.resolve() };
}

/** Reads which gateway listens. Undefined if none does. */
async function readAbout(socketPath: string): Promise<string | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<string | undefined>();
  const request = get({ socketPath, path: "/gateway", agent: false }, (response) => {
    let text = "";
    response.setEncoding("utf8");
    response.on("data", (piece: string) => (text += piece));
    response.on("end", () => resolve(text));
    response.on("error", reject);
  });
  request.setTimeout(answerMs, () => request.destroy(new Error("no answer")));
  request.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ECONNREFUSED") resolve(undefined);
    else reject(refusal(socketPath, error));
  });
  return promise;
}

function refusal(socketPath: string, cause: NodeJS.ErrnoException): CliError {
  if (cause.code === "EACCES") {
    const text = `only the gateway's user may use ${socketPath}: run the command as that user`;
    return new CliError(text, { cause });
  }
  const text = `the gateway that listens on ${socketPath} does not answer (${cause.message}): look at its log, and restart it if it hangs`;
  return new CliError(text, { cause });
}
