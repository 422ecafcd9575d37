/** The keys of a customer, as an operator sees and switches them. */
import { useMutation } from "@connectrpc/connect-query";
import { KeyRound } from "lucide-react";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../common/language.tsx";
import { keyColumns } from "../keys/columns.tsx";
import { useKeys } from "../keys/keys.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { useDone } from "../ui/toast.tsx";

/** The card. */
export function AccountKeys({ accountId }: { accountId: string }) {
  const texts = useText();
  const { accounts: text } = texts.operator;
  const { data, error, refetch } = useKeys(accountId);
  const turn: Column<Key> = {
    id: "switch",
    title: <span className="sr-only">{texts.common.actions("")}</span>,
    isTight: true,
    cell: (key) => <SwitchButton apiKey={key} />,
  };
  return (
    <Card>
      <CardHead title={text.keys} hint={text.keysHint} />
      {error === null ? (
        <Table
          label={text.keys}
          columns={[...keyColumns({ texts }), turn]}
          rows={data?.keys}
          keyOf={({ keyId }) => keyId}
          empty={<Empty icon={<KeyRound />} title={text.noKeys} hint={text.noKeysHint} />}
        />
      ) : (
        <div className="px-5 pb-5">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
    </Card>
  );
}

function SwitchButton({ apiKey: { keyId, name, masked, state } }: { apiKey: Key }) {
  const { keys: text } = useText();
  const done = useDone();
  const shown = name || masked;
  const enable = useMutation(KeyService.method.enableKey, {
    onSuccess: () => done(text.didEnable(shown)),
  });
  const disable = useMutation(KeyService.method.disableKey, {
    onSuccess: () => done(text.didDisable(shown)),
  });
  if (state === KeyState.DELETED) return null;
  const isOn = state === KeyState.ENABLED;
  const act = isOn ? disable : enable;
  const label = isOn ? text.disable : text.enable;
  return (
    <Button
      aria-label={`${label}: ${shown}`}
      isBusy={act.isPending}
      onClick={() => act.mutate({ keyId })}
    >
      {label}
    </Button>
  );
}
