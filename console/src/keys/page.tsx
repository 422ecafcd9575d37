/** API keys: the list and its actions. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useNow } from "../common/clock.tsx";
import { useLanguage, useText } from "../common/language.tsx";
import { msOf, relativeText } from "../common/time.ts";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { Segments } from "../ui/field.tsx";
import { FilterBar, isFound, SearchField } from "../ui/filter-bar.tsx";
import { useDone } from "../ui/form.tsx";
import { QueryTable } from "../ui/table.tsx";
import { useErrorToast, useToast } from "../ui/toast.tsx";
import { keyColumns } from "./columns.tsx";
import { useKeys } from "./keys.tsx";
import { EditDialog } from "./key-form.tsx";
import { SecretDialog, RevealDialog } from "./secret-dialogs.tsx";

/** The dialog that is open. */
type Open =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "delete" | "reveal"; readonly key: Key }
  | {
      readonly kind: "once";
      readonly apiKey: Key;
      readonly secret: string;
      readonly isAgain: boolean;
    };

/** `/keys`. */
export function KeysPage() {
  const { keys: text } = useText();
  const { create } = useSearch({ from: "/inside/keys" });
  const navigate = useNavigate();
  const [open, setOpen] = useState<Open | undefined>(create && { kind: "create" });
  const close = (): void => {
    setOpen(undefined);
    if (create) void navigate({ to: "/keys", search: {}, replace: true });
  };
  return (
    <>
      <PageHead
        title={text.title}
        hint={text.hint}
        actions={
          <Button tone="primary" onClick={() => setOpen({ kind: "create" })}>
            <Plus aria-hidden="true" />
            {text.create}
          </Button>
        }
      />
      <KeyList onOpen={setOpen} />
      <Dialogs open={open} onOpen={setOpen} onClose={close} />
    </>
  );
}

function KeyList({ onOpen }: { onOpen: (open: Open) => void }) {
  const texts = useText();
  const { keys: text } = texts;
  const query = useKeys();
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState<"current" | "all">("current");
  const switchKey = useSwitch();
  const found = query.data?.keys.filter(
    ({ name, masked, state }) =>
      (shown === "all" || state !== KeyState.DELETED) && isFound(search, name, masked),
  );
  const columns = keyColumns({
    texts,
    actions: {
      onEdit: (key) => onOpen({ kind: "edit", key }),
      onReveal: (key) => onOpen({ kind: "reveal", key }),
      onDelete: (key) => onOpen({ kind: "delete", key }),
      onSwitch: switchKey,
    },
  });
  const hasAny = (query.data?.keys.length ?? 0) > 0;
  return (
    <Card>
      <FilterBar label={text.title}>
        <SearchField label={text.search} value={search} onChange={setSearch} />
        <Segments
          label={text.show}
          value={shown}
          choices={[
            { value: "current", label: text.showCurrent },
            { value: "all", label: text.showAll },
          ]}
          onChoose={setShown}
        />
      </FilterBar>
      <QueryTable
        query={query}
        label={text.title}
        columns={columns}
        rows={found}
        keyOf={({ keyId }) => keyId}
        empty={<NoKeys hasAny={hasAny} onCreate={() => onOpen({ kind: "create" })} />}
      />
    </Card>
  );
}

function NoKeys({ hasAny, onCreate }: { hasAny: boolean; onCreate: () => void }) {
  const { keys: text } = useText();
  if (hasAny) return <Empty title={text.noMatch} hint={text.noMatchHint} />;
  const create = (
    <Button tone="primary" onClick={onCreate}>
      {text.create}
    </Button>
  );
  return <Empty icon={<KeyRound />} title={text.empty} hint={text.emptyHint} action={create} />;
}

/** Disables an enabled key, which can be undone at once, and enables a disabled one. */
function useSwitch(): (key: Key) => void {
  const { keys: text } = useText();
  const toast = useToast();
  const done = useDone();
  const queries = useQueryClient();
  const onError = useErrorToast();
  const enable = useMutation(KeyService.method.enableKey, { onError });
  const disable = useMutation(KeyService.method.disableKey, { onError });
  const turnOn = ({ keyId, name }: Key): void =>
    enable.mutate({ keyId }, { onSuccess: () => void done(text.didEnable(name || text.unnamed)) });
  const turnOff = (key: Key): void =>
    disable.mutate(
      { keyId: key.keyId },
      {
        onSuccess: () => {
          toast({
            title: text.didDisable(key.name || text.unnamed),
            description: text.didDisableNote,
            undo: () => turnOn(key),
          });
          void queries.invalidateQueries();
        },
      },
    );
  return (key) => (key.state === KeyState.ENABLED ? turnOff(key) : turnOn(key));
}

function Dialogs({
  open,
  onOpen,
  onClose,
}: {
  open: Open | undefined;
  onOpen: (open: Open) => void;
  onClose: () => void;
}) {
  const queries = useQueryClient();
  if (open === undefined) return null;
  if (open.kind === "once") return <SecretDialog {...open} onClose={onClose} />;
  if (open.kind === "delete")
    return <DeleteDialog key={open.key.keyId} apiKey={open.key} onClose={onClose} />;
  const onSecret = (key: Key, secret: string): void => {
    void queries.invalidateQueries();
    onOpen({ kind: "once", apiKey: key, secret, isAgain: open.kind === "reveal" || key.canReveal });
  };
  if (open.kind === "reveal") {
    return (
      <RevealDialog
        apiKey={open.key}
        onClose={onClose}
        onSecret={(secret) => onSecret(open.key, secret)}
      />
    );
  }
  return (
    <EditDialog
      apiKey={open.kind === "edit" ? open.key : undefined}
      onClose={onClose}
      onCreated={onSecret}
    />
  );
}

function DeleteDialog({ apiKey, onClose }: { apiKey: Key; onClose: () => void }) {
  const { keys: text } = useText();
  const { language } = useLanguage();
  const now = useNow();
  const done = useDone(onClose);
  const remove = useMutation(KeyService.method.deleteKey, {
    onSuccess: () => done(text.didDelete(apiKey.name || text.unnamed)),
  });
  const used = apiKey.lastUseTime;
  return (
    <Confirm
      isOpen
      onClose={onClose}
      onConfirm={() => remove.mutate({ keyId: apiKey.keyId })}
      title={text.removeTitle(apiKey.name || apiKey.masked)}
      confirm={text.removeConfirm}
      isBusy={remove.isPending}
      error={remove.error}
    >
      <p>{text.removeText}</p>
      <p className="mt-2 font-medium text-ink">
        {used === undefined
          ? text.removeUnused
          : text.removeUsed(relativeText(msOf(used), { now, language }))}
      </p>
    </Confirm>
  );
}
