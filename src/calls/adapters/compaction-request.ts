/**
 * The request `POST /v1/responses/compact`, served by a vendor that compacts or by a translation.
 */
import { asBuffer } from "../../core/bytes.ts";
import { invalid, present } from "../../core/validation.ts";
import type { TextRequest } from "../../dialect/dialect.ts";
import { memberOf } from "../../wire/json/source.ts";
import { ReadRequest } from "../pipeline/adapter.ts";
import type { PlannedRoute } from "../../routing/planned-route.ts";
import type { PreparedCall } from "../../routing/prepared-call.ts";
import { inputItems, listedItems } from "../../responses/stored/input-items.ts";

/** @throws GatewayError INVALID_REQUEST for what a compaction cannot be */
export function checkCompactRequest({ stream, isBackground }: TextRequest): void {
  for (const [name, isAsked] of Object.entries({ stream, background: isBackground })) {
    if (isAsked !== true) continue;
    throw invalid(name, `"${name}" is not supported by a compaction: leave it out, or send false`);
  }
}

/** Sends a compaction to a vendor that has an endpoint for it. */
export function compactBy(
  { dialect, query }: Pick<ReadRequest<Buffer>, "dialect" | "query">,
  { route: { model } }: PlannedRoute,
  sent: Pick<PreparedCall, "headers" | "body">,
): PreparedCall["send"] {
  const call = { ...sent, dialect: present(dialect), model, query, stream: false };
  return (vendor, signal) => present(vendor.compact).send({ ...call, signal });
}

/**
 * The user's messages, which a compacted conversation keeps, each complete with its id. As JSON.
 */
export function userMessages(body: Uint8Array, callId: string): readonly string[] {
  const items = inputItems(memberOf(asBuffer(body).toString("utf8"), "input"));
  const said = items.filter(({ record }) => record["role"] === "user");
  return listedItems(said, callId).map(({ json }) => json);
}
