/** The RPCs that show and change an account's secret. */
import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type WebhookSecret, WebhookSecretSchema } from "../../gen/uas/webhook/v1/webhook_pb.ts";
import { accountCheck } from "./access.ts";
import type { AccountSecrets } from "./secrets.ts";
import type { WebhookRpcs, WebhookServiceOptions } from "./service.ts";

/** Makes them. */
export function createSecretRpcs({
  secrets,
  accountExists,
}: WebhookServiceOptions): Pick<WebhookRpcs, "getSecret" | "rotateSecret" | "promoteSecret"> {
  const requireAccount = accountCheck(accountExists);
  return {
    async getSecret(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      return { secret: secretMessage(accountId, await secrets.get(accountId)) };
    },

    async rotateSecret(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      return { secret: secretMessage(accountId, await secrets.rotate(accountId)) };
    },

    async promoteSecret(request, context) {
      const accountId = await requireAccount(request.accountId, context);
      return {
        secret: secretMessage(accountId, await secrets.promote(accountId, request.dropOld)),
      };
    },
  };
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
