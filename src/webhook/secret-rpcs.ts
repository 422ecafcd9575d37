/** The RPCs that show and change an account's secret. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import { CodeAction } from "../../gen/uas/account/v1/session_pb.ts";
import { type WebhookSecret, WebhookSecretSchema } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { callerKey } from "../caller.ts";
import { sessionOf } from "../visit.ts";
import { accountCheck } from "./access.ts";
import type { AccountSecrets } from "./secrets.ts";
import type { WebhookRpcs, WebhookServiceOptions } from "./service.ts";

/** Makes them. */
export function createSecretRpcs({
  secrets,
  accountExists,
  requireStepUp,
}: WebhookServiceOptions): Pick<WebhookRpcs, "getSecret" | "rotateSecret" | "promoteSecret"> {
  const requireAccount = accountCheck(accountExists);
  const proved = async (
    { accountId, code }: { readonly accountId: string; readonly code: string },
    context: HandlerContext,
    action: CodeAction,
  ): Promise<string> => {
    const subjectId = await requireAccount(accountId, context);
    await requireStepUp(context, { action, subjectId, code });
    return subjectId;
  };
  return {
    async getSecret(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      const found = await secrets.get(accountId);
      if (request.code === "" && isSession(context)) {
        return { secret: secretMessage(accountId, masked(found)) };
      }
      await proved(request, context, CodeAction.REVEAL_WEBHOOK_SECRET);
      return { secret: secretMessage(accountId, found) };
    },

    async rotateSecret(request, context) {
      const accountId = await proved(request, context, CodeAction.ROTATE_WEBHOOK_SECRET);
      return { secret: secretMessage(accountId, await secrets.rotate(accountId)) };
    },

    async promoteSecret(request, context) {
      const accountId = await proved(request, context, CodeAction.ROTATE_WEBHOOK_SECRET);
      const promoted = await secrets.promote(accountId, request.dropOld);
      return { secret: secretMessage(accountId, promoted) };
    },
  };
}

/** Whether somebody who is signed in to the console calls, operators too. */
function isSession({ values }: HandlerContext): boolean {
  const caller = values.get(callerKey);
  return caller?.kind === "session" || sessionOf(caller) !== undefined;
}

/** The secrets as they are shown to whoever finds a browser open. */
function masked(secrets: AccountSecrets): AccountSecrets {
  const { current, other } = secrets;
  return { ...secrets, current: mask(current), other: other === undefined ? other : mask(other) };
}

function mask(secret: string): string {
  return `${secret.slice(0, secret.indexOf("_") + 1)}…${secret.replace(/=+$/, "").slice(-4)}`;
}

function secretMessage(accountId: string, secrets: AccountSecrets): WebhookSecret {
  const { current, other = "", isPromoted, rotationEndTime } = secrets;
  return create(WebhookSecretSchema, {
    accountId,
    current,
    other,
    isPromoted,
    ...(rotationEndTime && { rotationEndTime: timestampFromDate(rotationEndTime) }),
  });
}
