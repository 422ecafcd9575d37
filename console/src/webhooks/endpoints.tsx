/** The endpoints that webhooks are delivered to: their health, and a test event to one. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useNavigate } from "@tanstack/react-router";
import { Send } from "lucide-react";
import { useState } from "react";
import {
  type Endpoint,
  EndpointState,
  WebhookStatus,
} from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { type Texts, useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { SelectField, TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { Badge, ErrorNote, type Tone } from "../ui/show.tsx";
import { agoColumn, type Column, Table } from "../ui/table.tsx";

const tones: Readonly<Record<EndpointState, Tone>> = {
  [EndpointState.UNSPECIFIED]: "neutral",
  [EndpointState.HEALTHY]: "good",
  [EndpointState.FAILING]: "warn",
  [EndpointState.DEAD]: "bad",
};

/** The most endpoints that are shown. */
const endpointsMax = 200;

/** Refresh interval: the same as for the deliveries on the same page. */
const refreshMs = 5_000;

/** The endpoints of the account with their health. */
export function Endpoints() {
  const texts = useText();
  const { webhooks: text } = texts;
  const accountId = useAccountId();
  const done = useDone();
  const { data, error } = useQuery(
    WebhookService.method.listEndpoints,
    { accountId, pageSize: endpointsMax },
    { refetchInterval: refreshMs },
  );
  const reenable = useMutation(WebhookService.method.reenableEndpoint, {
    onSuccess: () => done(text.reenabled),
  });
  return (
    <Card>
      <CardHead title={text.endpoints} hint={text.endpointsHint} />
      <ErrorNote error={error ?? reenable.error} />
      <Table
        label={text.endpoints}
        columns={endpointColumns(texts, (origin) => reenable.mutate({ accountId, origin }))}
        rows={data?.endpoints}
        keyOf={({ origin }) => origin}
        empty={<Empty title={text.noEndpoints} hint={text.noEndpointsHint} />}
      />
    </Card>
  );
}

function endpointColumns(
  { webhooks: text, common }: Texts,
  onReenable: (origin: string) => void,
): Column<Endpoint>[] {
  return [
    {
      id: "origin",
      title: text.endpoint,
      cell: ({ origin }) => <span className="break-all">{origin}</span>,
    },
    {
      id: "state",
      title: common.status,
      cell: ({ state }) => (
        <Badge tone={tones[state] ?? "neutral"}>{text.endpointStates[state]}</Badge>
      ),
    },
    {
      id: "waiting",
      title: text.waiting,
      isNumber: true,
      cell: ({ waitingCount }) => waitingCount,
    },
    agoColumn({
      id: "success",
      title: text.lastSuccess,
      from: "md",
      none: common.never,
      time: ({ successTime }) => successTime,
    }),
    {
      id: "do",
      title: common.actionsColumn,
      isTight: true,
      cell: ({ origin, state }) =>
        state !== EndpointState.HEALTHY && (
          <Button onClick={() => onReenable(origin)}>{text.reenable}</Button>
        ),
    },
  ];
}

const events = [
  WebhookStatus.COMPLETED,
  WebhookStatus.PROGRESS,
  WebhookStatus.FAILED,
  WebhookStatus.CANCELLED,
] as const;

/** A button that opens the form for a test event. */
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
  const done = useDone(onClose);
  const navigate = useNavigate();
  const [url, setUrl] = useState("");
  const [event, setEvent] = useState("0");
  const send = useMutation(WebhookService.method.sendTestEvent, {
    onSuccess: async ({ delivery }) => {
      await done(text.testSent);
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
