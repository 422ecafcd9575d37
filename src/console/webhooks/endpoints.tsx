/** The receivers, and whether they answer. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { type Endpoint, EndpointState } from "../../../gen/uas/webhook/v1/webhook_pb.ts";
import { WebhookService } from "../../../gen/uas/webhook/v1/webhook_service_pb.ts";
import { useText } from "../common/language.tsx";
import { useAccountId } from "../common/session.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Badge, ErrorNote, Time, type Tone } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { useToast } from "../ui/toast.tsx";

const tones: Readonly<Record<EndpointState, Tone>> = {
  [EndpointState.UNSPECIFIED]: "neutral",
  [EndpointState.HEALTHY]: "good",
  [EndpointState.FAILING]: "warn",
  [EndpointState.DEAD]: "bad",
};

/** The most receivers that are shown. */
const endpointsMax = 200;

/** How often they are asked for anew, in milliseconds: as often as the deliveries beside them. */
const refreshMs = 5_000;

/** The card. */
export function Endpoints() {
  const { webhooks: text, common } = useText();
  const accountId = useAccountId();
  const toast = useToast();
  const queries = useQueryClient();
  const { data, error } = useQuery(
    WebhookService.method.listEndpoints,
    { accountId, pageSize: endpointsMax },
    { refetchInterval: refreshMs },
  );
  const reenable = useMutation(WebhookService.method.reenableEndpoint, {
    onSuccess: async () => {
      toast({ title: text.reenabled });
      await queries.invalidateQueries();
    },
  });
  const columns: Column<Endpoint>[] = [
    {
      id: "origin",
      title: text.receiver,
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
    {
      id: "success",
      title: text.lastSuccess,
      from: "md",
      cell: ({ successTime }) => <Time isRelative time={successTime} none={common.never} />,
    },
    {
      id: "do",
      title: <span className="sr-only">{text.reenable}</span>,
      isTight: true,
      cell: ({ origin, state }) =>
        state !== EndpointState.HEALTHY && (
          <Button onClick={() => reenable.mutate({ accountId, origin })}>{text.reenable}</Button>
        ),
    },
  ];
  return (
    <Card>
      <CardHead title={text.endpoints} hint={text.endpointsHint} />
      <ErrorNote error={error ?? reenable.error} />
      <Table
        label={text.endpoints}
        columns={columns}
        rows={data?.endpoints}
        keyOf={({ origin }) => origin}
        empty={<Empty title={text.noEndpoints} hint={text.noEndpointsHint} />}
      />
    </Card>
  );
}
