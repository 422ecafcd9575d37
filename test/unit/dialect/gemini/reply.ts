/** Replies and streams as Gemini writes them, and what is read of them. */
import type { GenerateEvent, Reply } from "../../../../gen/uas/inference/v1/generate_pb.ts";
import { gemini } from "../../../../src/dialect/gemini/dialect.ts";

/** Members of a chunk other than its parts. */
export interface ChunkOptions {
  readonly finish?: string;
  readonly candidate?: object;
  readonly usage?: object;
}

/** Usage if the test says nothing. */
export const counts = { promptTokenCount: 9, candidatesTokenCount: 4, totalTokenCount: 13 };

/** A whole reply, or one chunk of a stream. */
export const chunk = (
  parts: object[],
  { finish, candidate, usage = counts }: ChunkOptions = {},
): object => ({
  candidates: [
    {
      content: { role: "model", parts },
      index: 0,
      ...(finish && { finishReason: finish }),
      ...candidate,
    },
  ],
  usageMetadata: usage,
  modelVersion: "gemini-x-001",
  responseId: "resp",
});

/** A body. */
export const bytes = (value: unknown): Buffer => Buffer.from(JSON.stringify(value));
/** Reads a whole reply. */
export const whole = (value: unknown): Reply => gemini.decodeReply(bytes(value));
/** Chunks as a stream writes them. */
export const sse = (...chunks: object[]): string =>
  chunks.map((each) => `data: ${JSON.stringify(each)}\r\n\r\n`).join("");

/** Reads a stream that arrives cut at these bytes. */
export function streamed(body: string, cuts: readonly number[] = []): GenerateEvent[] {
  const all = Buffer.from(body);
  const decoder = gemini.decodeStream();
  const events: GenerateEvent[] = [];
  let at = 0;
  for (const cut of [...cuts.toSorted((a, b) => a - b), all.length]) {
    events.push(...decoder.push([Buffer.from(all.subarray(at, cut))]));
    at = cut;
  }
  return [...events, ...decoder.end()];
}

/** Returns the kinds of events. */
export const casesOf = (events: readonly GenerateEvent[]): unknown[] =>
  events.map(({ kind }) => kind.case);
/** The last of what happened. */
export const endOf = (events: readonly GenerateEvent[]): unknown => events.at(-1)?.kind.value;
