/** WebSocket frames: of a message, whole or broken, and of the answers. */
import type { Shot } from "./shot.ts";

/** A frame of the gateway. */
export interface Frame {
  readonly opcode: number;
  readonly payload: Buffer;
  /** With its head, in bytes. */
  readonly size: number;
}

const opcodes = { next: 0, text: 1, binary: 2, close: 8, ping: 9 } as const;

/** The gateway's last message of a request: its last event, or an error. */
const last = /"type":"(?:response\.(?:completed|incomplete|failed)|error)"/;

/** Masked with zeros: what is sent can be read. */
function frame(opcode: number, payload: Uint8Array, length = payload.length, flags = 0x80): Buffer {
  const isShort = length < 126;
  const head = Buffer.alloc(isShort ? 6 : 14);
  head[0] = flags | opcode;
  head[1] = 0x80 | (isShort ? length : 127);
  if (!isShort) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, payload]);
}

/** Asks for the end of the connection, in order. */
export const closeFrame = frame(opcodes.close, Buffer.from([3, 232]));

/** The body as a message; the framing says in which frames. */
export function messageFrames({ body, framing }: Shot): Buffer {
  const half = body.length >> 1;
  switch (framing) {
    case "length":
      return frame(opcodes.text, body);
    case "chunked":
      return Buffer.concat([
        frame(opcodes.text, body.subarray(0, half), half, 0),
        frame(opcodes.ping, Buffer.from("x")),
        frame(opcodes.next, body.subarray(half)),
      ]);
    case "wrong-length":
      return frame(opcodes.text, body, body.length + (body.length % 2 === 0 ? 7 : -3));
    case "bad-chunks": {
      const unmasked = frame(opcodes.text, body);
      unmasked[1] = (unmasked[1] ?? 0) & 0x7f;
      const bad = [
        frame(opcodes.next, body),
        frame(opcodes.text, body, body.length, 0xc0),
        frame(11, body),
        unmasked,
        frame(opcodes.text, body, 2 ** 40),
        frame(opcodes.ping, Buffer.alloc(200)),
      ];
      return bad[body.length % bad.length] as Buffer;
    }
    case "none":
    default:
      return frame(opcodes.binary, body);
  }
}

/**
 * Reads the frames of the gateway. @returns the frames that are whole; undefined if the bytes are
 * no frames
 */
export function readFrames(bytes: Buffer): Frame[] | undefined {
  const frames: Frame[] = [];
  for (let at = 0; bytes.length - at >= 2; ) {
    const [first = 0, second = 0] = bytes.subarray(at, at + 2);
    const opcode = first & 0x0f;
    // The gateway neither splits, compresses nor masks.
    if ((first & 0xf0) !== 0x80 || second > 127 || ![1, 8, 9, 10].includes(opcode))
      return undefined;
    const size = second === 127 ? 10 : second === 126 ? 4 : 2;
    if (bytes.length - at < size) break;
    const length =
      size === 10
        ? Number(bytes.readBigUInt64BE(at + 2))
        : size === 4
          ? bytes.readUInt16BE(at + 2)
          : second;
    const end = at + size + length;
    if (bytes.length < end) break;
    frames.push({ opcode, payload: bytes.subarray(at + size, end), size: end - at });
    at = end;
  }
  return frames;
}

/**
 * Whether the gateway has ended the request of a connection, or the connection, with one of these
 * frames.
 */
export function isAnswered(frames: readonly Frame[]): boolean {
  return frames.some(
    ({ opcode, payload }) =>
      opcode === opcodes.close || (opcode === opcodes.text && last.test(payload.toString())),
  );
}

/**
 * Returns the problem of the bytes that the gateway sent on a connection; undefined if there is
 * none.
 *
 * @param isWhole whether a whole request was sent, and its end was awaited
 */
export function webSocketProblem(bytes: Buffer, isWhole: boolean): string | undefined {
  const frames = readFrames(bytes);
  if (frames === undefined) return "frames that no WebSocket has";
  if (isWhole && !isAnswered(frames)) return "a request has no end";
  for (const { opcode, payload } of frames) {
    const text = payload.toString();
    if (opcode === opcodes.close && payload.length >= 2 && payload.readUInt16BE(0) === 1011)
      return `closed with an internal error: ${text.slice(2)}`;
    if (opcode !== opcodes.text) continue;
    const message = parseMessage(text);
    if (message === undefined) return `a message without a type: ${text.slice(0, 300)}`;
    const { type, status = 0 } = message;
    if (type === "error" && status >= 500 && status !== 503)
      return `an error: ${text.slice(0, 300)}`;
  }
  return undefined;
}

function parseMessage(text: string): { type: string; status?: number } | undefined {
  try {
    const json = JSON.parse(text) as { type?: unknown; status?: number };
    return typeof json.type === "string" ? { ...json, type: json.type } : undefined;
  } catch {
    return undefined;
  }
}
