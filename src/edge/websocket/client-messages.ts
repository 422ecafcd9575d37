/**
 * Reads the messages of clients: requests for responses, without the members for the connection.
 */
import { invalid } from "../../core/validation.ts";
import {
  applyEdits,
  knownMembers,
  type Members,
  pickMembers,
  readBoolean,
  readOutline,
  textOf,
  withoutMembers,
} from "../../dialect/body-members.ts";

/** A request of a connection. */
export interface SocketRequest {
  /** The stream whose requests are served in sequence; empty for the unnamed one. */
  readonly streamId: string;
  /** Whether the model is called. If not, the request only becomes the beginning of a later one. */
  readonly isGenerated: boolean;
  /** Whether the response may be stored. If not, only this connection can continue it. */
  readonly isStored: boolean;
  /** The response to continue; empty if there is none. */
  readonly previousId: string;
  /** The body as POST would have it, but for `stream`. */
  readonly body: Buffer;
}

/** Members of a message that no body has. */
const envelope: ReadonlySet<string> = new Set([
  "type",
  "stream_id",
  "generate",
  "stream",
  "background",
]);

const known = knownMembers(
  ["stream_id", "generate", "background", "previous_response_id", "store", "input"],
  ["type"],
);

/** The longest name of a stream, in characters. */
const streamIdCharsMax = 64;

/** Reads a message. @throws GatewayError INVALID_REQUEST, naming the member at fault */
export function readMessage(bytes: Buffer): SocketRequest {
  const outline = readOutline(bytes);
  const members = pickMembers(outline, known);
  const type = readString(bytes, members, "type");
  if (type !== "response.create") {
    throw invalid(
      "type",
      `"type" must be "response.create": the other members are those of POST /v1/responses`,
    );
  }
  if (readBoolean(bytes, members, "background")) {
    throw invalid(
      "background",
      '"background" is not supported over WebSocket: use POST /v1/responses',
    );
  }
  const streamId = readString(bytes, members, "stream_id");
  if (streamId.length > streamIdCharsMax) {
    throw invalid("stream_id", `"stream_id" must have at most ${streamIdCharsMax} characters`);
  }
  return {
    streamId,
    isGenerated: !members.has("generate") || readBoolean(bytes, members, "generate"),
    isStored: !members.has("store") || readBoolean(bytes, members, "store"),
    previousId: readString(bytes, members, "previous_response_id"),
    body: withoutMembers(bytes, outline.members, envelope),
  };
}

/** A string; empty if it is absent or null. */
function readString(bytes: Buffer, members: Members, name: string): string {
  const text = textOf(bytes, members, name);
  const value: unknown = text === undefined ? "" : JSON.parse(text);
  if (typeof value === "string") return value;
  throw invalid(name, `"${name}" must be a string`);
}

/**
 * The items of a body's input as JSON, without the brackets of the list; empty if there are none.
 */
export function inputJson(body: Buffer): string {
  const members = pickMembers(readOutline(body), known);
  const text = textOf(body, members, "input") ?? "";
  if (text.startsWith('"')) return `{"role":"user","content":${text}}`;
  return text.startsWith("[") ? text.slice(1, -1).trim() : "";
}

/**
 * A body whose input begins with the items of the conversation that it continues, in place of its
 * id.
 */
export function continued(body: Buffer, items: string): Buffer {
  const { members } = readOutline(body);
  const rest = withoutMembers(body, members, new Set(["previous_response_id", "input"]));
  const input = [items, inputJson(body)].filter((part) => part !== "").join(",");
  const end = rest.length - 1;
  const text = `${end > 1 ? "," : ""}"input":[${input}]`;
  return Buffer.concat(applyEdits(rest, [{ start: end, end, text }]));
}
