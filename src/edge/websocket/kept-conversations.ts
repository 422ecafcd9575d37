/**
 * Stores the conversations of a connection: of responses that are not stored elsewhere, and of
 * requests that were only prepared.
 */
import { listElements, memberOf } from "../../wire/json/source.ts";
import { parseRecord, textAt, isRecord } from "../../wire/json/value.ts";
import { bodyBytesMax } from "../../core/limits.ts";
import { webSocketMax } from "../../config/web-socket-limits.ts";

/** The memory of a process for them. */
export class ConversationMemory {
  #bytes = 0;

  /**
   * Reserves memory.
   *
   * @returns false if there is not enough
   */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > webSocketMax.conversationBytes) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Releases memory. */
  give(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** The last conversation of one stream of a connection. */
export class LastConversation {
  readonly #memory: ConversationMemory;
  #responseId = "";
  #items = "";
  #bytes = 0;

  constructor(memory: ConversationMemory) {
    this.#memory = memory;
  }

  /**
   * The items of a response's conversation, as JSON without brackets. Undefined if it belongs to
   * another response.
   */
  find(responseId: string): string | undefined {
    return responseId !== "" && responseId === this.#responseId ? this.#items : undefined;
  }

  /** Replaces the stored conversation, if there is enough memory. */
  keep(responseId: string, items: string): void {
    this.forget();
    const bytes = Buffer.byteLength(items);
    if (bytes > bodyBytesMax || !this.#memory.take(bytes)) return;
    this.#responseId = responseId;
    this.#items = items;
    this.#bytes = bytes;
  }

  /** Forgets the conversation. */
  forget(): void {
    this.#memory.give(this.#bytes);
    this.#responseId = "";
    this.#items = "";
    this.#bytes = 0;
  }
}

/** A response that has ended. */
export interface EndedResponse {
  readonly id: string;
  /** Its items as JSON, without the brackets of the list. */
  readonly items: string;
}

/** Reads an event. Undefined if it does not end a response that can be continued. */
export function endedResponse(event: string): EndedResponse | undefined {
  if (!/"response\.(?:completed|incomplete)"/.test(event)) return undefined;
  const { type, response } = parseRecord(event) ?? {};
  if (type !== "response.completed" && type !== "response.incomplete") return undefined;
  if (!isRecord(response)) return undefined;
  const output = listElements(memberOf(memberOf(event, "response"), "output"));
  const items = output.filter((item) => isContinuable(parseRecord(item)));
  return { id: textAt(response, "id"), items: items.join(",") };
}

/** Reasoning without its content can be continued only if the vendor has stored it. */
function isContinuable(item: unknown): boolean {
  return (
    !isRecord(item) || item["type"] !== "reasoning" || textAt(item, "encrypted_content") !== ""
  );
}
