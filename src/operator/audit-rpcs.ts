/** The RPC that shows what operators did. */
import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { MikroORM } from "@mikro-orm/postgresql";
import type { InferEntity } from "@mikro-orm/core";
import { type AuditEntry, AuditEntrySchema } from "../../gen/uas/operator/v1/operator_pb.ts";
import type {
  ListAuditEntriesRequest,
  OperatorService,
} from "../../gen/uas/operator/v1/operator_service_pb.ts";
import { answering } from "../database-lost.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { cutPage, readPage } from "../page-token.ts";
import { parseLine } from "../text-line.ts";
import { isUuid } from "../uuid.ts";
import { AuditEntryEntity } from "./entity.ts";

/** Makes it. */
export function createAuditRpcs(
  orm: MikroORM,
): Pick<ServiceImpl<typeof OperatorService>, "listAuditEntries"> {
  return {
    async listAuditEntries(request) {
      const page = readPage(request, { isKey: isUuid });
      const after = page.after === undefined ? [] : [{ id: { $lt: page.after } }];
      const where = { $and: [...after, ...conditionsOf(request)] };
      const order = { orderBy: { id: "desc" }, limit: page.limit + 1 } as const;
      const rows = await answering(orm.em.fork().find(AuditEntryEntity, where, order));
      const { items, nextPageToken } = cutPage(page, rows, ({ id }) => id);
      return { entries: items.map(entryMessage), nextPageToken };
    },
  };
}

function conditionsOf({
  accountId,
  action,
  actor,
  fromTime,
  toTime,
}: ListAuditEntriesRequest): object[] {
  if (accountId !== "" && !isUuid(accountId)) throw noSuchAccount();
  const named = { charsMin: 0, charsMax: 200 } as const;
  const wanted = parseLine(action, { param: "action", ...named });
  const who = parseLine(actor, { param: "actor", ...named });
  return [
    ...(accountId === "" ? [] : [{ accountId }]),
    ...(who === "" ? [] : [{ actor: who }]),
    // No name of a room has a dot: a room's actions begin with it and one.
    ...(wanted === ""
      ? []
      : [{ $or: [{ action: wanted }, { action: { $like: roomOf(wanted) } }] }]),
    ...(fromTime === undefined ? [] : [{ createTime: { $gte: timestampDate(fromTime) } }]),
    ...(toTime === undefined ? [] : [{ createTime: { $lt: timestampDate(toTime) } }]),
  ];
}

function roomOf(action: string): string {
  return `${action.replaceAll(/[\\%_]/g, "\\$&")}.%`;
}

function noSuchAccount(): GatewayError {
  const text = "there is no such account: check account_id";
  return new GatewayError(ErrorCode.NOT_FOUND, text, { param: "account_id" });
}

function entryMessage(row: InferEntity<typeof AuditEntryEntity>): AuditEntry {
  return create(AuditEntrySchema, {
    auditEntryId: row.id,
    createTime: timestampFromDate(row.createTime),
    actor: row.actor,
    requestId: row.requestId,
    action: row.action,
    accountId: row.accountId ?? "",
    subject: row.subject,
    ...(row.before && { before: row.before as JsonObject }),
    ...(row.after && { after: row.after as JsonObject }),
    reason: row.reason,
  });
}
