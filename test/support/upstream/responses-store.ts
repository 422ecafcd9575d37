/** Replies that a vendor of the responses style stores, unless the request disables it. */
import { type Json, objects, string } from "./read.ts";

/** Replies by id, and items by id. */
export class ResponsesStore {
  readonly #conversations = new Map<string, readonly Json[]>();
  readonly #items = new Map<string, Json>();

  /** Whether an item was stored. */
  has(itemId: string): boolean {
    return this.#items.has(itemId);
  }

  /**
   * The items of a request, with what its references mean, after those it continues. References to
   * what is not stored stay as they are.
   */
  conversationOf(json: Json): readonly Json[] {
    const before = this.#conversations.get(string(json["previous_response_id"])) ?? [];
    const { input } = json;
    const given: readonly Json[] =
      typeof input === "string" ? [{ role: "user", content: input }] : objects(input);
    return [
      ...before,
      ...given.map((item) =>
        item["type"] === "item_reference" ? (this.#items.get(string(item["id"])) ?? item) : item,
      ),
    ];
  }

  /** Keeps a reply, unless the request says not to. */
  keep(json: Json, response: Json): void {
    if (json["store"] === false) return;
    const output = objects(response["output"]);
    for (const item of output) this.#items.set(string(item["id"]), item);
    this.#conversations.set(string(response["id"]), [...this.conversationOf(json), ...output]);
  }
}
