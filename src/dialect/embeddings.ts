/** Relays embeddings replies in OpenAI's form. */
import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../gen/uas/type/v1/usage_pb.ts";
import { jsonDepthMax } from "../config/limits.ts";
import { UnreadableReplyError } from "./json/value.ts";
import { type Member, scanObject, sliceText } from "./json/outline.ts";
import { JsonScanError } from "./json/string-scan.ts";
import { Splicer } from "./json/splice.ts";

/** A reply after relaying. */
export interface RelayedEmbeddings {
  readonly body: Buffer;
  /** What the vendor reported; `undefined`: nothing usable. */
  readonly usage: Usage | undefined;
}

/**
 * Reads usage out of a reply and restores the public model name in it; every other byte stays.
 *
 * @param publicModel `undefined`: leave what the vendor wrote
 * @throws UnreadableReplyError
 */
export function relayEmbeddings(body: Buffer, publicModel: string | undefined): RelayedEmbeddings {
  const members = membersOf(body);
  const usage = members.findLast(({ key }) => key === "usage");
  const splicer = new Splicer();
  for (const { key, valueStart, valueEnd } of members) {
    if (key !== "model" || publicModel === undefined) continue;
    splicer.replace(valueStart, valueEnd, Buffer.from(JSON.stringify(publicModel)));
  }
  return {
    usage: usage && readUsage(sliceText(body, usage)),
    body: splicer.apply(body, body.length),
  };
}

function membersOf(body: Buffer): readonly Member[] {
  try {
    return scanObject(body, jsonDepthMax).members;
  } catch (error) {
    if (!(error instanceof JsonScanError)) throw error;
    throw new UnreadableReplyError(`embeddings: ${error.message} at byte ${error.offset}`);
  }
}

/** Some compatible vendors report only the total, which is the input. */
function readUsage(text: string): Usage | undefined {
  const wire = JSON.parse(text) as { prompt_tokens?: unknown; total_tokens?: unknown } | null;
  const inputTokens = count(wire?.prompt_tokens) ?? count(wire?.total_tokens);
  return inputTokens === undefined ? undefined : create(UsageSchema, { inputTokens });
}

function count(value: unknown): number | undefined {
  const isCount = Number.isInteger(value) && Number(value) > 0 && Number(value) < 2 ** 31;
  return isCount ? Number(value) : undefined;
}
