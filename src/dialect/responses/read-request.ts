/** The request half of relaying responses. */
import { invalid } from "../../core/validation.ts";
import {
  firstByteOf,
  knownMembers,
  type Members,
  readBoolean,
  readCount,
  textOf,
} from "../body-members.ts";
import type { VendorModel } from "../codec.ts";
import type { ReadRequestOptions, TextRequest } from "../dialect.ts";
import type { TurnRules } from "../turns/relayed-turns.ts";
import { parseRecord } from "../../wire/json/value.ts";
import { findMembers, sameStyleRequest } from "../turns/same-style-request.ts";
import { guardedResponsesMembers } from "./guard.ts";

const quote = 0x22;

const openBracket = 0x5b;

const known = knownMembers([
  "model",
  "input",
  "stream",
  "max_output_tokens",
  "previous_response_id",
  "background",
  "prompt_cache_options",
  ...guardedResponsesMembers,
]);

/** Implements {@link TextDialect.readRequest}. */
export function readResponsesRequest(body: Uint8Array, options: ReadRequestOptions): TextRequest {
  const found = findMembers(body, known);
  const { bytes, members } = found;
  checkInput(bytes, members);
  const maxOutputTokens = readCount(bytes, members, "max_output_tokens");
  const isBackground = readBoolean(bytes, members, "background");
  const limit = onlyWarms(bytes, members) ? 0 : maxOutputTokens;
  const facts = { maxOutputTokens: limit, form, rulesFor };
  return { ...sameStyleRequest(found, options, facts), isBackground };
}

const form = { list: "input", textType: "input_text" } as const;

function rulesFor({ quirks = {} }: VendorModel): TurnRules {
  const { lateSystem = "in_place", developerRole = "accepted" } = quirks;
  return { lateSystem, developerRole };
}

/** Whether the vendor is to fill its prompt cache, and to write nothing. */
function onlyWarms(bytes: Buffer, members: Members): boolean {
  const options = parseRecord(textOf(bytes, members, "prompt_cache_options") ?? "");
  return options?.["prewarm"] === true;
}

/** All of it may be absent: a stored prompt or an earlier response can be enough. */
function checkInput(bytes: Buffer, members: Members): void {
  const input = firstByteOf(bytes, members, "input");
  if (input !== undefined && input !== quote && input !== openBracket) {
    throw invalid("input", '"input" must be a string or an array');
  }
  const previous = firstByteOf(bytes, members, "previous_response_id");
  if (previous !== undefined && previous !== quote) {
    throw invalid("previous_response_id", '"previous_response_id" must be a string');
  }
}
