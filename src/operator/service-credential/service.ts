/** The RPCs of service credentials. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ContextValues, ServiceImpl } from "@connectrpc/connect";
import { type InferEntity, LockMode } from "@mikro-orm/core";
import type { EntityManager, MikroORM } from "@mikro-orm/postgresql";
import {
  type CreateServiceCredentialRequest,
  type ServiceCredential,
  ServiceCredentialSchema,
  type ServiceCredentialService,
} from "../../../gen/uas/operator/v1/service_credential_service_pb.ts";
import type { Clock } from "../../core/clock.ts";
import { mapDatabaseLoss } from "../../core/database-lost.ts";
import { ErrorCode, GatewayError } from "../../core/errors.ts";
import { isPermission, permissions as known } from "../../core/permissions.ts";
import { cutPage, readPage } from "../../core/pagination.ts";
import { invalid } from "../../core/validation.ts";
import { transact } from "../../db/pool/transaction.ts";
import { digestBytes, digestSecret, maskSecret, newServiceSecret } from "../../key/secret.ts";
import { recordAction } from "../../observe/operator-log.ts";
import { ServiceCredentialEntity } from "../entity.ts";

/** Options of {@link createServiceCredentialService}. */
interface ServiceCredentialOptions {
  readonly orm: MikroORM;
  readonly clock: Pick<Clock, "now">;
}

type Rpcs = ServiceImpl<typeof ServiceCredentialService>;
type Row = InferEntity<typeof ServiceCredentialEntity>;

/** Default time for which a replaced secret stays valid. */
const overlapMsDefault = 3_600_000;

const overlapMsMax = 30 * 24 * 3_600_000;

/** Implements `uas.operator.v1.ServiceCredentialService`. */
export function createServiceCredentialService({ orm, clock }: ServiceCredentialOptions): Rpcs {
  const switchTo =
    (isDisabled: boolean) =>
    async ({ name }: { readonly name: string }, { values }: Context) => {
      const action = isDisabled ? "disable" : "enable";
      const row = await change(orm, { name, values, action }, (each) =>
        Object.assign(each, { isDisabled }),
      );
      return { serviceCredential: messageOf(row) };
    };
  return {
    async listServiceCredentials(request) {
      const page = readPage(request);
      const where = page.after === undefined ? {} : { name: { $gt: page.after } };
      const order = { orderBy: { name: "asc" }, limit: page.limit + 1 } as const;
      const found = orm.em.fork().find(ServiceCredentialEntity, where, order);
      const { items, nextPageToken } = cutPage(
        page,
        await mapDatabaseLoss(found),
        ({ name }) => name,
      );
      return { serviceCredentials: items.map(messageOf), nextPageToken };
    },

    async createServiceCredential(request, { values }) {
      const terms = readTerms(request);
      const { secret, ...stored } = freshSecret();
      const row = await transact(orm, async (em) => {
        if ((await em.findOne(ServiceCredentialEntity, { name: terms.name })) !== null) {
          throw nameTaken(terms.name);
        }
        const createTime = new Date(clock.now());
        const added = em.create(ServiceCredentialEntity, { ...terms, ...stored, createTime });
        await em.flush();
        await record(em, values, { action: "create", name: terms.name, after: terms });
        return added;
      });
      return { serviceCredential: messageOf(row), secret };
    },

    async rotateServiceCredential({ name, overlap }, { values }) {
      const overlapMs = overlap === undefined ? overlapMsDefault : durationMs(overlap);
      if (overlapMs < 0 || overlapMs > overlapMsMax) throw badOverlap();
      const { secret, ...stored } = freshSecret();
      const previousExpireTime = new Date(clock.now() + overlapMs);
      const row = await change(orm, { name, values, action: "rotate" }, (each) =>
        Object.assign(each, { ...stored, previousDigest: each.digest, previousExpireTime }),
      );
      return { serviceCredential: messageOf(row), secret };
    },

    disableServiceCredential: switchTo(true),
    enableServiceCredential: switchTo(false),

    async deleteServiceCredential({ name }, { values }) {
      await transact(orm, async (em) => {
        const count = await em.nativeDelete(ServiceCredentialEntity, { name });
        if (count > 0) await record(em, values, { action: "delete", name });
      });
      return {};
    },
  };
}

interface Context {
  readonly values: ContextValues;
}

interface Change extends Context {
  readonly name: string;
  readonly action: "rotate" | "enable" | "disable";
}

/** Changes a service credential under its row lock. @throws GatewayError NOT_FOUND */
function change(
  orm: MikroORM,
  { name, values, action }: Change,
  apply: (row: Row) => void,
): Promise<Row> {
  return transact(orm, async (em) => {
    const lock = { lockMode: LockMode.PESSIMISTIC_WRITE } as const;
    const row = await em.findOne(ServiceCredentialEntity, { name }, lock);
    if (row === null) throw noSuchCredential(name);
    apply(row);
    await em.flush();
    await record(em, values, { action, name });
    return row;
  });
}

interface Recorded {
  readonly action: string;
  readonly name: string;
  readonly after?: Readonly<Record<string, unknown>>;
}

function record(em: EntityManager, values: ContextValues, { action, name, after }: Recorded) {
  return recordAction(em, values, { action: `service.${action}`, subject: name, after });
}

function freshSecret() {
  const secret = newServiceSecret();
  return { secret, digest: digestBytes(digestSecret(secret)), masked: maskSecret(secret) };
}

/** Reads the properties of a new service credential. @throws GatewayError INVALID_REQUEST */
function readTerms({ name, permissions, expireTime }: CreateServiceCredentialRequest) {
  if (!/^[a-z][a-z0-9-]{0,62}$/.test(name)) {
    throw invalid(
      "name",
      "name must be 1 to 63 lower-case letters, digits and hyphens, beginning with a letter",
    );
  }
  const unknown = permissions.find((each) => !isPermission(each));
  if (unknown !== undefined) {
    const all = Object.keys(known).join(", ");
    throw invalid("permissions", `permissions has "${unknown}", which is none of: ${all}`);
  }
  const expires = expireTime === undefined ? null : timestampDate(expireTime);
  return { name, permissions: [...new Set(permissions)].toSorted(), expireTime: expires };
}

function messageOf(row: Row): ServiceCredential {
  const { expireTime, previousExpireTime } = row;
  const fields: MessageInitShape<typeof ServiceCredentialSchema> = {
    name: row.name,
    permissions: row.permissions,
    maskedSecret: row.masked,
    disabled: row.isDisabled,
    createTime: timestampFromDate(row.createTime),
    ...(expireTime && { expireTime: timestampFromDate(expireTime) }),
    ...(previousExpireTime && { previousExpireTime: timestampFromDate(previousExpireTime) }),
  };
  return create(ServiceCredentialSchema, fields);
}

function noSuchCredential(name: string): GatewayError {
  const text = `there is no service credential "${name}": uas service list shows all`;
  return new GatewayError(ErrorCode.NOT_FOUND, text);
}

function nameTaken(name: string): GatewayError {
  const text = `the service credential "${name}" exists: choose another name, or rotate it`;
  return new GatewayError(ErrorCode.CONFLICT, text);
}

function badOverlap(): GatewayError {
  return invalid("overlap", "overlap must be 0 seconds to 30 days");
}
