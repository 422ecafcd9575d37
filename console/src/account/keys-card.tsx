/** The API keys of an account, which operators can enable and disable. */
import { useMutation } from "@connectrpc/connect-query";
import { KeyRound } from "lucide-react";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../common/language.tsx";
import { keyColumns } from "../keys/columns.tsx";
import { useKeys } from "../keys/keys.tsx";
import { Button } from "../ui/button.tsx";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { useDone } from "../ui/form.tsx";
import { type Column, QueryTable } from "../ui/table.tsx";

/** The list of keys with a button that enables or disables each. */
export function AccountKeys({ accountId }: { accountId: string }) {
  const texts = useText();
  const { accounts: text } = texts;
  const query = useKeys(accountId);
  const turn: Column<Key> = {
    id: "switch",
    title: texts.common.actionsColumn,
    isTight: true,
    cell: (key) => <SwitchButton apiKey={key} />,
  };
  return (
    <Card>
      <CardHead title={text.keys} hint={text.keysHint} />
      <QueryTable
        query={query}
        label={text.keys}
        columns={[...keyColumns({ texts }), turn]}
        rows={query.data?.keys}
        keyOf={({ keyId }) => keyId}
        empty={<Empty icon={<KeyRound />} title={text.noKeys} hint={text.noKeysHint} />}
      />
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
