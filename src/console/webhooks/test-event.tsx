/** Sends a sample to a receiver. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Send } from "lucide-react";
import { useState } from "react";
import { WebhookStatus } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import { FormDialog } from "../ui/form.tsx";
import { useToast } from "../ui/toast.tsx";

const events = [
  WebhookStatus.COMPLETED,
  WebhookStatus.PROGRESS,
  WebhookStatus.FAILED,
  WebhookStatus.CANCELLED,
] as const;

/** The button with its dialog. */
export function TestEvent() {
  const { webhooks: text } = useText();
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>
        <Send aria-hidden="true" />
        {text.sendTest}
      </Button>
      {isOpen && <TestDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function TestDialog({ onClose }: { onClose: () => void }) {
  const { webhooks: text } = useText();
  const accountId = useAccountId();
  const toast = useToast();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const [url, setUrl] = useState("");
  const [event, setEvent] = useState("0");
  const send = useMutation(WebhookService.method.sendTestEvent, {
    onSuccess: async ({ delivery }) => {
      onClose();
      toast({ title: text.testSent });
      await queries.invalidateQueries();
      if (delivery === undefined) return;
      await navigate({ to: "/webhooks", search: { delivery: delivery.deliveryId } });
    },
  });
  const submit = (): void => {
    send.mutate({ accountId, url, status: events[Number(event)] ?? WebhookStatus.COMPLETED });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={text.testTitle}
      onSubmit={submit}
      submit={text.send}
      isBusy={send.isPending}
      error={send.error}
    >
      <TextField
        label={text.testUrl}
        hint={text.testHint}
        type="url"
        required
        autoFocus
        placeholder="https://"
        value={url}
        onChange={(changed) => setUrl(changed.target.value)}
      />
      <SelectField
        label={text.event}
        value={event}
        choices={events.map((status, index) => ({
          value: String(index),
          label: text.events[status] ?? "",
        }))}
        onChoose={setEvent}
      />
    </FormDialog>
  );
}
