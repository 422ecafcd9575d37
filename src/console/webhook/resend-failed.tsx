/** Sends everything again that was given up. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../language.tsx";
import { timestampOf } from "../time.ts";
import { Button } from "../ui/button.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { useToast } from "../ui/toast.tsx";

/** How far back failed deliveries are sent again, in milliseconds. */
const resendMs = 7 * 86_400_000;

/** The button, which asks first. */
export function ResendFailed({ accountId }: { accountId: string }) {
  const { webhooks: text } = useText();
  const toast = useToast();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const resend = useMutation(WebhookService.method.resendFailed, {
    onSuccess: async ({ deliveryCount }) => {
      setOpen(false);
      toast({ title: text.resentCount(deliveryCount) });
      await queries.invalidateQueries();
    },
  });
  return (
    <>
      <Button onClick={() => setOpen(true)}>{text.resendFailed}</Button>
      <Confirm
        isOpen={isOpen}
        onClose={() => setOpen(false)}
        onConfirm={() => resend.mutate({ accountId, since: timestampOf(Date.now() - resendMs) })}
        title={text.resendFailedTitle}
        confirm={text.resend}
        isBusy={resend.isPending}
      >
        {text.resendFailedText}
        <ErrorNote error={resend.error} />
      </Confirm>
    </>
  );
}
