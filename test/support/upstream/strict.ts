/** Components of a strict simulation, and the sending of its answers. */
import { createHash } from "node:crypto";
import { bytes } from "./behaviour.ts";
import type { Behaviour, Exchange, RecordedRequest } from "./exchange.ts";
import type { Rules } from "./rules.ts";
import { type Play, playOf, type Turn } from "./scenario.ts";
import { type Path, ShapeError } from "./shape.ts";

/** A vendor's style, in full strictness. */
export interface StrictStyle {
  /** Headers other than `authorization` in which it takes a credential, in lower case. */
  readonly ownHeaders: readonly string[];
  /** Returns violations of the rules for requests to a vendor of this style. */
  violationsOf(request: RecordedRequest): string[];
  /** The answer that refuses a request; undefined if it is accepted. */
  refusalOf(request: RecordedRequest, rules: Rules): Behaviour | undefined;
  /** Answers as the conversation says. */
  readonly answer: Behaviour;
}

/** An error as a style writes it. */
export interface StyleError {
  readonly status: number;
  readonly message: string;
  readonly code?: string | undefined;
  readonly path?: Path;
  /** Additional members of the style's error. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A reply in the words of a style. */
export interface Written {
  readonly whole: Readonly<Record<string, unknown>>;
  /** Events of the stream, each with the empty line that ends it. */
  readonly frames: readonly string[];
}

/** The parts of a style that differ. */
export interface StyleParts {
  readonly ownHeaders?: readonly string[];
  /** Prefixes of headers that belong to other styles. */
  readonly foreignPrefixes: readonly string[];
  /** Headers of the vendor's replies besides the content type. */
  readonly headers: Readonly<Record<string, string>>;
  /** Returns the error for an unknown path or credential. */
  doorRefusal(request: RecordedRequest, rules: Rules): StyleError | undefined;
  /** Throws ShapeError, or returns an error, if the body is not accepted. */
  check(request: RecordedRequest): StyleError | undefined;
  /** Describes the problem of the shape. */
  messageOf(error: ShapeError): string;
  errorBody(error: StyleError): Record<string, unknown>;
  /** The event that reports an error in a stream. */
  errorFrame(error: StyleError): string;
  turnOf(request: RecordedRequest): Turn;
  /** @param id 24 hexadecimal digits, unique to the request. */
  write(play: Play, turn: Turn, context: WriteContext): Written;
}

/** Context for writing a reply. */
export interface WriteContext {
  readonly request: RecordedRequest;
  /** 24 hexadecimal digits, unique to the body. */
  readonly id: string;
}

/** Makes a style of its parts. */
export function strictStyle(parts: StyleParts): StrictStyle {
  const refuse = (error: StyleError): Behaviour => refusal(parts, error);
  return {
    ownHeaders: parts.ownHeaders ?? [],
    violationsOf: (request) => foreignIn(request, parts),
    refusalOf(request, rules) {
      const door = parts.doorRefusal(request, rules);
      if (door) return refuse(door);
      if (request.json === undefined) {
        return refuse({
          status: 400,
          message: "We could not parse the JSON body of your request.",
        });
      }
      try {
        const error = parts.check(request);
        return error && refuse(error);
      } catch (error) {
        if (!(error instanceof ShapeError)) throw error;
        const { path, code = codes[error.kind] } = error;
        return refuse({ status: 400, message: parts.messageOf(error), path, code });
      }
    },
    answer: (exchange) => perform(exchange, parts),
  };
}

const codes = {
  unknown: "unknown_parameter",
  missing: "missing_required_parameter",
  invalid: "invalid_value",
} as const;

function foreignIn(request: RecordedRequest, { foreignPrefixes }: StyleParts): string[] {
  const where = `${request.method} ${request.url}`;
  const found = Object.keys(request.headers)
    .filter((name) => foreignPrefixes.some((prefix) => name.startsWith(prefix)))
    .map((name) => `${where}: header ${name}`);
  if (request.body.includes("uas1.")) found.push(`${where}: a wrapped seal of another vendor`);
  return found;
}

function refusal(parts: StyleParts, error: StyleError): Behaviour {
  const retry = error.status === 429 ? { "retry-after": "7" } : {};
  return bytes(JSON.stringify(parts.errorBody(error)), {
    status: error.status,
    headers: { ...parts.headers, ...retry, "content-type": "application/json" },
  });
}

async function perform(exchange: Exchange, parts: StyleParts): Promise<void> {
  const turn = parts.turnOf(exchange.request);
  const play = playOf(turn);
  const { failure } = play;
  if (failure?.kind === "status" || (failure?.kind === "error" && !turn.stream)) {
    const status = failure.kind === "status" ? failure.status : 500;
    return refusal(parts, { status, message: `simulated ${status}` })(exchange);
  }
  const id = createHash("sha256").update(exchange.request.body).digest("hex").slice(0, 24);
  const written = parts.write(play, turn, { request: exchange.request, id });
  if (turn.stream) await sendFrames(exchange, parts, { frames: written.frames, failure });
  else await sendWhole(exchange, parts, { whole: written.whole, isCut: failure !== undefined });
}

async function sendWhole(
  exchange: Exchange,
  parts: StyleParts,
  { whole, isCut }: { whole: Written["whole"]; isCut: boolean },
): Promise<void> {
  const body = Buffer.from(JSON.stringify(whole));
  if (!isCut) return bytes(body, { headers: parts.headers })(exchange);
  const { response } = exchange;
  response.writeHead(200, {
    ...parts.headers,
    "content-type": "application/json",
    "content-length": body.length,
  });
  await exchange.write(body.subarray(0, body.length >> 1));
  response.destroy();
}

/** Sizes of the pieces in which streams leave, in turn: inside names, characters and line ends. */
const pieceSizes = [1, 40, 3, 700, 17, 2, 256, 1_500] as const;

async function sendFrames(
  exchange: Exchange,
  parts: StyleParts,
  { frames, failure }: { frames: readonly string[]; failure: Play["failure"] },
): Promise<void> {
  const { response } = exchange;
  response.writeHead(200, {
    ...parts.headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  response.flushHeaders();
  const half = frames.length >> 1;
  const error = { status: 500, message: "The server had an error while processing your request." };
  const sent =
    failure === undefined
      ? frames
      : failure.kind === "error"
        ? [...frames.slice(0, half), parts.errorFrame(error)]
        : [...frames.slice(0, half), frames[half]?.slice(0, 20) ?? ""];
  const all = Buffer.from(sent.join(""));
  for (let at = 0, turn = 0; at < all.length; turn++) {
    const size = pieceSizes[turn % pieceSizes.length] ?? 1;
    if (!(await exchange.write(all.subarray(at, at + size)))) return;
    at += size;
  }
  if (failure?.kind === "cut") response.destroy();
  else response.end();
}

/** An event without a name. */
export function dataFrame(data: unknown): string {
  return `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;
}

/** An event that is named after its `type`. */
export function namedFrame(data: Readonly<Record<string, unknown>>): string {
  return `event: ${String(data["type"])}\n${dataFrame(data)}`;
}
