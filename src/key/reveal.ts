/** The RPC that shows a key again (R-KEY-3). */
import type { ServiceImpl } from "@connectrpc/connect";
import type { MikroORM } from "@mikro-orm/postgresql";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import type { KeyService } from "../../gen/uas/key/v1/key_service_pb.ts";
import { answering } from "../database-lost.ts";
import { ErrorCode, GatewayError } from "../errors.ts";
import { isUuid } from "../uuid.ts";
import { type RequireStepUp, requireSession } from "../visit.ts";
import type { KeyCopies } from "./copies.ts";
import { ApiKeyEntity } from "./entity.ts";
import { noSuchKey } from "./refusals.ts";

/** That a key was shown, for the log. */
export interface RevealedKey {
  readonly keyId: string;
  /** To whom. */
  readonly userId: string;
}

/** What {@link createRevealRpc} needs. */
export interface RevealOptions {
  readonly orm: MikroORM;
  readonly copies: KeyCopies;
  readonly requireStepUp: RequireStepUp;
  /** Told of each key that was shown. Default: nobody. */
  readonly onReveal?: (facts: RevealedKey) => void;
}

/** Makes it. Only for sessions of the key's own account: operators are no exception. */
export function createRevealRpc({
  orm,
  copies,
  requireStepUp,
  onReveal = () => {},
}: RevealOptions): Pick<ServiceImpl<typeof KeyService>, "revealKey"> {
  return {
    async revealKey({ keyId, code }, context) {
      const { accountId, userId } = requireSession(context);
      const where = { id: keyId, accountId };
      const row = isUuid(keyId)
        ? await answering(orm.em.fork().findOne(ApiKeyEntity, where))
        : null;
      if (row === null) throw noSuchKey();
      // Before the code is used up: where there is nothing to show, it is good for something else.
      const secret = await copies.open(accountId, keyId);
      if (secret === undefined) throw noCopy();
      await requireStepUp(context, { action: CodeAction.REVEAL_KEY, subjectId: keyId, code });
      onReveal({ keyId, userId });
      return { secret };
    },
  };
}

function noCopy(): GatewayError {
  const text = "no copy of this key is kept: create another one, and delete this one";
  return new GatewayError(ErrorCode.INVALID_REQUEST, text, { param: "key_id" });
}
