/** What a text task takes of a reply: its text, why it ended, and what it is charged by. */
import { type GenerateEvent, StopReason } from "../../gen/uas/inference/v1/generate_pb.ts";
import { UsageSource } from "../../gen/uas/type/v1/usage_pb.ts";
import { webhookBodyBytesMax } from "../config/limits.ts";
import { type TaskOutcome, TaskRefused, type TaskTokens } from "../vendor/task.ts";
import type { Metered } from "./metering.ts";

/** Gathers a reply from its events. */
export class TextReply {
  /** The vendor's id of the reply; empty: it told none. */
  id = "";
  #stopReason: StopReason = StopReason.UNSPECIFIED;
  #stopDetail = "";
  /** What was said, by the number of the part, in the order of their beginnings. */
  readonly #said = new Map<number, string>();

  /** Takes the next events. @throws TaskRefused where the vendor failed */
  add(events: readonly GenerateEvent[]): void {
    for (const { kind } of events) {
      if (kind.case === "start") this.id = kind.value.id;
      else if (kind.case === "partStart") {
        const part = kind.value.part?.kind;
        const isSaid = part?.case === "text" || part?.case === "refusal";
        if (isSaid) this.#said.set(kind.value.index, part.value.text);
      } else if (kind.case === "partDelta") {
        const { index, delta } = kind.value;
        const said = this.#said.get(index);
        if (said !== undefined && delta.case === "text") this.#said.set(index, said + delta.value);
      } else if (kind.case === "end") {
        this.#stopReason = kind.value.stopReason;
        this.#stopDetail = kind.value.stopDetail;
      } else if (kind.case === "error") {
        const { message } = kind.value;
        throw new TaskRefused("upstream_error", message || "The model's vendor failed");
      }
    }
  }

  /** What the model said. @throws TaskRefused where it said nothing */
  text(): string {
    const text = [...this.#said.values()].join("").toWellFormed();
    if (text !== "") return text;
    const reason = this.#stopReason;
    const isFiltered = reason === StopReason.CONTENT_FILTER || reason === StopReason.REFUSAL;
    if (!isFiltered) {
      throw new TaskRefused("upstream_error", "The model answered without a text");
    }
    const detail = this.#stopDetail === "" ? "" : `: ${this.#stopDetail}`;
    const message = `The model's vendor does not want this content${detail}`;
    throw new TaskRefused("content_rejected", message);
  }
}

/** A text that webhooks may be too short for is a file too: that has an address. Half is left for what else they
 * tell. */
export function textFiles(text: string): TaskOutcome["files"] {
  const isShort = Buffer.byteLength(JSON.stringify(text)) <= webhookBodyBytesMax / 2;
  return isShort ? [] : [{ bytes: Buffer.from(text), contentType: "text/plain" }];
}

/** What was consumed, as tasks tell it. */
export function textUsage({ usage, source }: Metered): { readonly usage?: TaskTokens } {
  if (usage === undefined) return {};
  const { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = usage;
  const isEstimated = source === UsageSource.ESTIMATED;
  const tokens = { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens };
  return { usage: { ...tokens, reasoningTokens, isEstimated } };
}
