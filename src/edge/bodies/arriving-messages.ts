/**
 * Counts messages that follow each other on one stream of bytes, each from its first byte until it is complete. Between two
 * messages nothing is counted, and no rate is asked for: a stream may be silent.
 */
import type { UnfinishedBody } from "./unfinished-bodies.ts";

/** What follows the head of a frame. */
export interface Frame {
  /** Bytes behind the head. */
  readonly bytes: number;
  /** Whether it belongs to no message, and may come in the middle of one. */
  readonly isControl: boolean;
  /** Whether its message ends with it. */
  readonly isLast: boolean;
}

/** Reads the head of a frame from its first bytes; `undefined` while it is not complete. */
export type ReadFrameHead = (head: readonly number[]) => Frame | undefined;

const nothing: Frame = { bytes: 0, isControl: true, isLast: true };

/** Follows the frames of a stream, lawful or not: whoever reads the messages refuses those that are not. */
export class ArrivingMessages {
  readonly #readHead: ReadFrameHead;
  readonly #open: () => UnfinishedBody;
  /** The message that has begun and is not complete. */
  #message: UnfinishedBody | undefined;
  /** The part of a frame's head that has arrived. */
  #head: number[] = [];
  #frame = nothing;
  /** Bytes of the present frame that are still to come; 0: a head comes next. */
  #left = 0;

  /** @param open called where a message begins that is not complete with the piece of its first byte */
  constructor(readHead: ReadFrameHead, open: () => UnfinishedBody) {
    this.#readHead = readHead;
    this.#open = open;
  }

  /** Follows what has arrived, in order. @throws GatewayError where a message is over a budget, or too long */
  push(piece: Uint8Array): void {
    let bytes = 0;
    let frames = 0;
    for (let at = 0; at < piece.length; ) {
      if (this.#left === 0) {
        this.#head.push(piece[at++] as number);
        const frame = this.#readHead(this.#head);
        if (frame === undefined) continue;
        this.#head = [];
        this.#frame = frame;
        this.#left = frame.bytes;
        if (!frame.isControl) frames++;
      }
      const taken = Math.min(this.#left, piece.length - at);
      at += taken;
      this.#left -= taken;
      const { isControl, isLast } = this.#frame;
      if (isControl) continue;
      bytes += taken;
      if (this.#left > 0 || !isLast) continue;
      this.close();
      bytes = frames = 0;
    }
    if (bytes + frames === 0) return;
    this.#message ??= this.#open();
    this.#message.keep(bytes, frames + 1);
  }

  /** Ends the watch over the message that is arriving. */
  close(): void {
    this.#message?.close();
    this.#message = undefined;
  }
}
