/** Rules that every reply must meet. */
import type { Outcome } from "./send-http1.ts";
import type { Shot } from "./shot.ts";
import { webSocketProblem } from "./web-socket-frames.ts";

/** Texts that no reply may show. */
export interface Secrets {
  readonly canaries: readonly string[];
}

/** Statuses of RPCs that only a defect causes: unknown and internal. */
const brokenCodes = /"code":"(?:internal|unknown|data_loss)"/;

/**
 * A 503 that blames a vendor. Those of a run are never busy, and take the gateway's key unless a
 * request has changed it.
 */
const blamesVendor =
  /upstream_overloaded|temporarily out of service|vendors of the model are failing/;

/**
 * Returns the problem of a reply; undefined if there is none. A 503 with a retry time is allowed
 * while the gateway is busy. The vendors of a run always answer, so every other 5xx is a fault of
 * the gateway.
 */
export function judge(shot: Shot, outcome: Outcome, { canaries }: Secrets): string | undefined {
  const { status, headers, body, end, extra } = outcome;
  if (end === "hang") return `no end after ${Math.round(outcome.ms)} ms (status ${status})`;
  if (extra > 0 && shot.isFramed && shot.readMax === Infinity)
    return `${extra} bytes behind the reply`;
  // Required by Connect and gRPC for a compression that the server does not support.
  if (status === 501 && isRpc(shot) && /"code":"unimplemented"/.test(excerpt(body)))
    return undefined;
  if (status >= 500 && !(status === 503 && headers["retry-after"] !== undefined)) {
    return `status ${status}: ${excerpt(body)}`;
  }
  if (status === 503 && blamesVendor.test(body.toString("latin1")))
    return `a vendor is blamed: ${excerpt(body)}`;
  const grpcStatus = headers["grpc-status"];
  if (grpcStatus === "2" || grpcStatus === "13" || grpcStatus === "15") {
    return `grpc-status ${grpcStatus}: ${headers["grpc-message"]}`;
  }
  if (headers["injected"] !== undefined) return "a header of the request's making";
  if ((headers["x-uas-dropped"] ?? "").length > 1_024) return "x-uas-dropped is too long";
  const type = headers["content-type"] ?? "";
  if (/connect|grpc/.test(type) || isRpc(shot)) {
    const text = body.toString("latin1");
    if (brokenCodes.test(text)) return `an RPC failed: ${excerpt(body)}`;
  }
  if (status === 101) {
    const problem = webSocketProblem(body, isWholeAsked(shot));
    if (problem !== undefined) return problem;
  }
  if (status > 0 && status < 400 && isWholeAsked(shot)) {
    const hosts = shot.headers.filter(([name]) => name.toLowerCase() === "host");
    if (hosts.length !== 1) return `status ${status} with ${hosts.length} hosts`;
  }
  if (end === "closed" && status > 0 && isWholeAsked(shot)) {
    return `a reply of status ${status} was cut after ${body.length} bytes`;
  }
  if (end === "closed" && status === 0 && isWholeAsked(shot) && shot.isFramed) {
    return "the connection was closed without a reply";
  }
  if (status >= 400 && end === "complete" && shot.method !== "HEAD" && isStyled(shot)) {
    const problem = errorProblem(body);
    if (problem !== undefined) return `status ${status} with ${problem}: ${excerpt(body)}`;
  }
  for (const canary of canaries) {
    if (body.includes(canary)) return "a vendor's credential is in the reply";
  }
  return undefined;
}

/** Whether the request was sent to its end, and its client waits for all of the reply. */
function isWholeAsked({ cutAt, then, readMax, readMs, raw, isFramed, isHttp2 }: Shot): boolean {
  return (
    cutAt === undefined &&
    then === "read" &&
    readMax === Infinity &&
    readMs === Infinity &&
    raw === undefined &&
    isFramed &&
    !isHttp2
  );
}

function isRpc({ target }: Shot): boolean {
  return target.startsWith("/uas.") || target.startsWith("/console/rpc/uas.");
}

/**
 * Whether errors have the form of a style: all requests to the public listener below the paths of
 * OpenAI and Anthropic.
 */
function isStyled({ listener, target, raw, entry, isFramed }: Shot): boolean {
  if (listener !== "public") return false;
  return raw === undefined && isFramed && entry !== "routes" && /^\/(?:v1|api\/ai)\//.test(target);
}

function errorProblem(body: Buffer): string | undefined {
  let json: unknown;
  try {
    json = JSON.parse(body.toString());
  } catch {
    return "a body that is not JSON";
  }
  return typeof json === "object" && json !== null && "error" in json ? undefined : "no `error`";
}

function excerpt(body: Buffer): string {
  return body.toString("latin1", 0, 300).replaceAll(/[^\x20-\x7e]+/g, " ");
}
