/** Secrets that are stored in the database: their list, and entering one. */
import { useMutation, useQuery } from "@connectrpc/connect-query";
import { LockKeyhole } from "lucide-react";
import { useState } from "react";
import type { ConfigSecret } from "../../../gen/uas/config/v1/config_pb.ts";
import { ConfigService } from "../../../gen/uas/config/v1/config_service_pb.ts";
import { useActorName } from "../accounts/account.tsx";
import { shownError } from "../common/rpc.ts";
import { Card, CardHead, Empty } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { ActionMenu } from "../ui/menu.tsx";
import { Badge } from "../ui/show.tsx";
import { agoColumn, QueryTable } from "../ui/table.tsx";
import { useText } from "../common/language.tsx";
import { useConfigurationText } from "./text.ts";

/** The list of stored secrets, without their values. */
export function SecretsCard() {
  const text = useConfigurationText();
  const { common } = useText();
  const actorName = useActorName();
  const [open, setOpen] = useState<{ action: "replace" | "delete"; name: string }>();
  const query = useQuery(ConfigService.method.listSecrets, { pageSize: 1_000 });
  const close = (): void => setOpen(undefined);
  return (
    <Card>
      <CardHead title={text.secrets} hint={text.secretsHint} />
      <QueryTable
        query={query}
        label={text.secrets}
        columns={[
          {
            id: "name",
            title: text.name,
            cell: ({ name, used }: ConfigSecret) => (
              <span className="flex min-w-24 flex-wrap items-center gap-2">
                <span className="font-mono text-xs wrap-anywhere">{name}</span>
                <Badge tone={used ? "good" : "neutral"}>
                  {used ? text.secretUsed : text.secretUnused}
                </Badge>
              </span>
            ),
          },
          agoColumn({
            id: "time",
            title: text.secretSet,
            time: ({ updateTime }: ConfigSecret) => updateTime,
          }),
          {
            id: "author",
            title: text.by,
            from: "sm",
            cell: ({ author }) => actorName(author),
          },
          {
            id: "actions",
            title: <span className="sr-only">{common.actionsColumn}</span>,
            isTight: true,
            cell: ({ name, used }) => (
              <ActionMenu
                label={common.actions(name)}
                items={[
                  {
                    label: text.secretReplace,
                    onSelect: () => setOpen({ action: "replace", name }),
                  },
                  {
                    label: text.secretDelete,
                    isDanger: true,
                    isDisabled: used,
                    onSelect: () => setOpen({ action: "delete", name }),
                  },
                ]}
              />
            ),
          },
        ]}
        rows={query.data?.secrets}
        keyOf={({ name }) => name}
        empty={<Empty icon={<LockKeyhole />} title={text.secretsNone} />}
      />
      {open?.action === "replace" && (
        <SecretDialog replaces={open.name} suggestedName={open.name} onClose={close} />
      )}
      {open?.action === "delete" && <DeleteDialog name={open.name} onClose={close} />}
    </Card>
  );
}

function DeleteDialog({ name, onClose }: { name: string; onClose: () => void }) {
  const text = useConfigurationText();
  const finish = useDone(onClose);
  const remove = useMutation(ConfigService.method.deleteSecret, {
    onSuccess: () => finish(text.secretDeleted(name)),
  });
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => remove.mutate({ name })}
      title={text.secretDeleteTitle(name)}
      confirm={text.secretDelete}
      isBusy={remove.isPending}
      error={remove.error}
    >
      <p>{text.secretDeleteBody}</p>
    </Confirm>
  );
}

/** Asks for a secret, and stores it. The value stays nowhere in the page. */
export function SecretDialog({
  replaces,
  suggestedName,
  onClose,
  onStored,
}: {
  /** The secret whose value is replaced. Without it, a new one is stored. */
  replaces?: string;
  suggestedName: string;
  onClose: () => void;
  onStored?: (name: string) => void;
}) {
  const text = useConfigurationText();
  const finish = useDone(onClose);
  const [name, setName] = useState(suggestedName);
  const [value, setValue] = useState("");
  // No time in the cache of requests: their values are secrets.
  const store = useMutation(ConfigService.method.setSecret, {
    gcTime: 0,
    onSuccess: async () => {
      onStored?.(name);
      await finish(text.secretStored(name));
    },
  });
  const { param, text: message } = shownError(store.error ?? undefined);
  const errorOf = (field: string): string | undefined =>
    store.error !== null && param === field ? message : undefined;
  const isPlaced = errorOf("name") !== undefined || errorOf("value") !== undefined;
  return (
    <FormDialog
      onClose={onClose}
      title={replaces === undefined ? text.secretTitle : text.secretReplaceTitle(replaces)}
      description={replaces === undefined ? text.secretHint : text.secretReplaceHint}
      submit={text.secretStore}
      isBusy={store.isPending}
      canSubmit={name !== "" && value !== ""}
      error={isPlaced ? undefined : store.error}
      onSubmit={() => store.mutate({ name, value: value.trim() })}
    >
      {replaces === undefined && (
        <TextField
          label={text.secretName}
          hint={text.secretNameHint}
          error={errorOf("name")}
          value={name}
          spellCheck={false}
          onChange={({ target }) => setName(target.value)}
        />
      )}
      <TextField
        label={text.secretValue}
        error={errorOf("value")}
        type="password"
        autoComplete="new-password"
        value={value}
        onChange={({ target }) => setValue(target.value)}
      />
    </FormDialog>
  );
}
