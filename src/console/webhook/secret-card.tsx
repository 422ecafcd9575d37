/** What webhooks are signed with: masked until a code by SMS shows it, and how to replace it. */
import { useQuery } from "@connectrpc/connect-query";
import { useState } from "react";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../language.tsx";
import { useAccountId } from "../session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead } from "../ui/card.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { type Deed, SecretDialog } from "./secret-dialog.tsx";
import { Secrets } from "./secrets.tsx";
import { verification } from "./verification.ts";

/** The card. */
export function SecretCard() {
  const { webhooks: text } = useText();
  const accountId = useAccountId();
  const [deed, setDeed] = useState<Deed>();
  const { data, error } = useQuery(WebhookService.method.getSecret, { accountId });
  const secret = data?.secret;
  const isRotating = secret !== undefined && secret.other !== "";
  return (
    <Card>
      <CardHead
        title={text.secret}
        hint={text.secretHint}
        actions={
          <>
            <Button onClick={() => setDeed("reveal")}>{text.reveal}</Button>
            {isRotating && !secret.isPromoted && (
              <Button onClick={() => setDeed("promote")}>{text.promote}</Button>
            )}
            <Button onClick={() => setDeed("rotate")}>{text.rotate}</Button>
          </>
        }
      />
      <div className="flex flex-col gap-6 px-5 pb-5">
        <ErrorNote error={error} />
        {secret !== undefined && <Secrets secret={secret} />}
        <div>
          <h3 className="font-medium">{text.verify}</h3>
          <p className="mb-3 text-[0.8125rem] text-muted">{text.verifyHint}</p>
          <CodeTabs label={text.verify} versions={verification} />
        </div>
      </div>
      {deed !== undefined && <SecretDialog deed={deed} onClose={() => setDeed(undefined)} />}
    </Card>
  );
}
