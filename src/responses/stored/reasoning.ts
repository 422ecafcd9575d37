/**
 * Stores reasoning for clients whose style cannot carry it (chat completions). Before the next
 * request to a vendor it restores the reasoning into the turns of its tool calls (R-TXT-3). It is
 * stored for a day, sealed per account, and found by the IDs of the tool calls.
 */
import { createHash } from "node:crypto";
import { create, fromJson, toJson, type JsonValue } from "@bufbuild/protobuf";
import type { Pool } from "pg";
import { PartSchema, Role, type Part } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { GenerateEvent, Generation } from "../../../gen/uas/inference/v1/generate_pb.ts";
import { keptReasoningBytesMax, keptReasoningTtlMs } from "../../core/limits.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import type { RowOf } from "../../db/row.ts";
import type { KeptReasoningEntity } from "./entity.ts";
import type { SealedColumns } from "../../core/sealed-columns.ts";
import { createSealing, type Sealing } from "../../core/sealing.ts";

/**
 * Restores stored reasoning into a conversation. Undefined if it has no tool calls, so there is
 * none.
 */
export function recallReasoning(
  carry: ReasoningCarry,
  accountId: string,
  generation: Generation,
): Promise<void> | undefined {
  const turns = (generation.conversation?.turns ?? []).filter(
    (turn) => turn.role === Role.ASSISTANT && callIds(turn.parts).length > 0,
  );
  if (turns.length === 0) return undefined;
  return (async () => {
    const found = await carry.find(
      accountId,
      turns.flatMap((turn) => callIds(turn.parts)),
    );
    for (const turn of turns) {
      const json = callIds(turn.parts).flatMap((id) => found.get(id) ?? [])[0];
      if (json === undefined) continue;
      turn.parts = restored(readParts(json), turn.parts);
    }
  })();
}

/**
 * Merges stored reasoning into a turn, in the vendor's order: vendors require each reasoning part
 * before the calls that it led to.
 *
 * @param kept the reasoning, and markers for the text and the calls around it
 * @param sent the parts that the client sent
 */
function restored(kept: readonly Part[], sent: readonly Part[]): Part[] {
  // Reasoning that the client sends back has lost its seal.
  const rest = new Set(sent.filter(({ kind }) => kind.case !== "reasoning"));
  const take = (isNext: (part: Part) => boolean): Part[] => {
    const taken = [...rest].filter(isNext);
    for (const part of taken) rest.delete(part);
    return taken;
  };
  const isText = ({ kind }: Part): boolean => kind.case !== "toolCall";
  const parts = kept.flatMap((part) => {
    const mark = part.kind;
    if (mark.case === "reasoning") return [part];
    // The client may have added text: it goes before the calls.
    const texts = take(isText);
    if (mark.case !== "toolCall") return texts;
    const { id } = mark.value;
    return [...texts, ...take(({ kind }) => kind.case === "toolCall" && kind.value.id === id)];
  });
  return [...parts, ...take(isText), ...rest];
}

function callIds(parts: readonly Part[]): string[] {
  return parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value.id] : []));
}

function readParts(json: string): Part[] {
  return (JSON.parse(json) as JsonValue[]).map((part) => fromJson(PartSchema, part));
}

/** Collects the reasoning and the tool calls of one reply. */
export class ReasoningCollector {
  /** By index: reasoning, and markers for the text and the calls around it. */
  readonly #parts = new Map<number, Part>();
  readonly #callIds: string[] = [];

  /** Adds the parts of a complete reply. */
  addParts(parts: readonly Part[]): void {
    for (const [index, part] of parts.entries()) this.#add(index, part);
  }

  /** Adds events of a streamed reply. */
  addEvents(events: readonly GenerateEvent[]): void {
    for (const { kind } of events) {
      if (kind.case === "partStart" && kind.value.part) {
        this.#add(kind.value.index, kind.value.part);
      } else if (kind.case === "partDelta" && this.#parts.size > 0) {
        this.#addDelta(kind.value.index, kind.value.delta);
      }
    }
  }

  /** Returns the sealed reasoning to store, with its tool calls; undefined if there is none. */
  sealed(): { readonly callIds: readonly string[]; readonly json: string } | undefined {
    const parts = [...this.#parts.values()].filter(
      ({ kind }) => kind.case !== "reasoning" || kind.value.seal !== undefined,
    );
    const hasReasoning = parts.some(({ kind }) => kind.case === "reasoning");
    if (!hasReasoning || this.#callIds.length === 0) return undefined;
    const json = JSON.stringify(parts.map((part) => toJson(PartSchema, part)));
    return { callIds: this.#callIds, json };
  }

  #add(index: number, part: Part): void {
    const { kind } = part;
    if (kind.case === "toolCall") {
      const { id } = kind.value;
      this.#callIds.push(id);
      this.#parts.set(index, create(PartSchema, { kind: { case: "toolCall", value: { id } } }));
    }
    if (kind.case === "text") {
      this.#parts.set(index, create(PartSchema, { kind: { case: "text", value: {} } }));
    }
    if (kind.case !== "reasoning") return;
    this.#parts.set(index, {
      ...part,
      kind: { case: "reasoning", value: { ...kind.value } },
    });
  }

  #addDelta(index: number, delta: PartDeltaKind): void {
    const kind = this.#parts.get(index)?.kind;
    if (kind?.case !== "reasoning") return;
    const reasoning = kind.value;
    if (delta.case === "text") reasoning.text += delta.value;
    else if (delta.case === "summaryStart") reasoning.summaries = [...reasoning.summaries, ""];
    else if (delta.case === "summary") {
      const last = reasoning.summaries.at(-1) ?? "";
      reasoning.summaries = [...reasoning.summaries.slice(0, -1), last + delta.value];
    } else if (delta.case === "seal") reasoning.seal = delta.value;
  }
}

type PartDeltaKind = Extract<GenerateEvent["kind"], { case: "partDelta" }>["value"]["delta"];

/**
 * Stores reasoning. Both methods throw GatewayError SERVICE_UNAVAILABLE if the database is
 * unreachable.
 */
export interface ReasoningCarry {
  /**
   * Stores the reasoning of one turn, durably, before the client can send the results of its calls.
   *
   * @param toolCallIds the IDs of all calls of the turn, as the client gets them
   * @param partsJson the turn's reasoning parts, as JSON in the caller's form
   * @returns false if it is not stored: no calls, or longer than `keptReasoningBytesMax`
   */
  keep(accountId: string, toolCallIds: readonly string[], partsJson: string): Promise<boolean>;
  /**
   * Finds the reasoning of the turns that made these calls, in one query for a conversation.
   *
   * @returns the JSON by call ID, identical for all calls of a turn; expired reasoning and the
   * reasoning of other accounts is missing
   */
  find(accountId: string, toolCallIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
}

/** Options of {@link createReasoningCarry}. */
interface ReasoningCarryOptions {
  readonly pool: Pool;
  /** The master key, 32 bytes. */
  readonly key: Uint8Array;
  /**
   * Called if stored reasoning cannot be unsealed: the master key was changed, or differs between
   * processes. Default: no callback.
   */
  readonly warn?: (message: string, fields: Readonly<Record<string, unknown>>) => void;
}

const purpose = "reasoning";

/** The stored reasoning, for a change of the master key. */
export const sealedReasoning: SealedColumns = {
  table: "kept_reasoning",
  key: ["account_id", "digest"],
  columns: ["sealed"],
  account: "account_id",
  purpose,
  context: (row) => row["digest"] as Buffer,
};

/** Creates the reasoning store over a database. */
export function createReasoningCarry(options: ReasoningCarryOptions): ReasoningCarry {
  const { pool, key, warn = () => {} } = options;
  const sealing = createSealing(key, purpose);
  return {
    keep: (accountId, toolCallIds, partsJson) =>
      keep({ pool, sealing }, { accountId, toolCallIds, partsJson }),
    async find(accountId, toolCallIds) {
      const found = new Map<string, string>();
      if (toolCallIds.length === 0) return found;
      const kept = await read(pool, accountId, toolCallIds);
      for (const id of toolCallIds) {
        const row = kept.get(digestOf(id).toString("hex"));
        if (row === undefined) continue;
        const text = sealing.open(accountId, row.first_digest, row.sealed);
        if (text !== undefined) found.set(id, text);
        else
          warn("stored reasoning cannot be decrypted: was UAS_MASTER_KEY changed?", { accountId });
      }
      return found;
    },
  };
}

/** In the order of digests, so that concurrent writers of the same rows cannot deadlock. */
const keepSql = `
insert into kept_reasoning (account_id, digest, first_digest, sealed, expires_at)
  select $1, d, $3, case when d = $3 then $4::bytea end, now() + $5 * interval '1 ms'
    from unnest($2::bytea[]) as d order by d
  on conflict (account_id, digest) do update set
    first_digest = excluded.first_digest, sealed = excluded.sealed, expires_at = excluded.expires_at`;

const findSql = `
select r.digest, f.digest as first_digest, f.sealed
  from kept_reasoning r
  join kept_reasoning f on f.account_id = r.account_id and f.digest = r.first_digest
  where r.account_id = $1 and r.digest = any($2::bytea[])
    and r.expires_at > now() and f.sealed is not null`;

type Row = RowOf<typeof KeptReasoningEntity, "digest" | "first_digest"> & {
  readonly sealed: Buffer;
};

async function keep(
  { pool, sealing }: { readonly pool: Pool; readonly sealing: Sealing },
  kept: { accountId: string; toolCallIds: readonly string[]; partsJson: string },
): Promise<boolean> {
  const { accountId, partsJson } = kept;
  const digests = [...new Set(kept.toolCallIds)].map(digestOf);
  const [first] = digests;
  if (first === undefined || Buffer.byteLength(partsJson) > keptReasoningBytesMax) return false;
  const sealed = sealing.seal(accountId, first, partsJson);
  await mapDatabaseLoss(
    pool.query(keepSql, [accountId, digests, first, sealed, keptReasoningTtlMs]),
  );
  return true;
}

async function read(
  pool: Pool,
  accountId: string,
  toolCallIds: readonly string[],
): Promise<ReadonlyMap<string, Row>> {
  const digests = [...new Set(toolCallIds)].map(digestOf);
  const { rows } = await mapDatabaseLoss(pool.query<Row>(findSql, [accountId, digests]));
  return new Map(rows.map((row) => [row.digest.toString("hex"), row]));
}

/** A digest of fixed length: vendors choose the length and characters of ids. */
function digestOf(toolCallId: string): Buffer {
  return createHash("sha256").update(toolCallId).digest();
}
