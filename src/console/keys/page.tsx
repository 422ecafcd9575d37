/** API keys: the list, and everything that can be done with them. */
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
import { Segments, TextField } from "../ui/field.tsx";
import { ErrorNote } from "../ui/show.tsx";
import { Table } from "../ui/table.tsx";
import { useToast } from "../ui/toast.tsx";
import { keyColumns } from "./columns.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { useKeys } from "./keys.tsx";
import { RevealDialog, SecretDialog } from "./secret-dialogs.tsx";

/** What a window over the page is about. */
type Open =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "delete" | "again"; readonly key: Key }
  | {
      readonly kind: "once";
      readonly apiKey: Key;
      readonly secret: string;
      readonly isAgain: boolean;
    };

/** The page. */
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
      <Windows open={open} onOpen={setOpen} onClose={close} />
    </>
  );
}

function KeyList({ onOpen }: { onOpen: (open: Open) => void }) {
  const texts = useText();
  const { keys: text } = texts;
  const { data, error, refetch } = useKeys();
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState<"active" | "all">("active");
  const switchKey = useSwitch();
  const found = data?.keys.filter(
    ({ name, masked, state }) =>
      (shown === "all" || state !== KeyState.DELETED) &&
      `${name} ${masked}`.toLowerCase().includes(search.trim().toLowerCase()),
  );
  const columns = keyColumns({
    texts,
    actions: {
      onEdit: (key) => onOpen({ kind: "edit", key }),
      onAgain: (key) => onOpen({ kind: "again", key }),
      onDelete: (key) => onOpen({ kind: "delete", key }),
      onSwitch: switchKey,
    },
  });
  const hasAny = (data?.keys.length ?? 0) > 0;
  return (
    <Card>
      <div className="flex flex-wrap items-center justify-between gap-3 border-b border-line p-4">
        <div className="w-full max-w-64">
          <TextField
            label={text.search}
            isLabelHidden
            type="search"
            placeholder={text.search}
            value={search}
            onChange={(event) => setSearch(event.target.value)}
            className="h-8"
          />
        </div>
        <Segments
          label={text.show}
          value={shown}
          choices={[
            { value: "active", label: text.showActive },
            { value: "all", label: text.showAll },
          ]}
          onChoose={setShown}
        />
      </div>
      {error !== null && (
        <div className="p-4">
          <ErrorNote error={error} onRetry={() => void refetch()} />
        </div>
      )}
      {error === null && (
        <Table
          label={text.title}
          columns={columns}
          rows={found}
          keyOf={({ keyId }) => keyId}
          empty={
            hasAny ? (
              <Empty title={text.noMatch} hint={text.noMatchHint} />
            ) : (
              <Empty
                icon={<KeyRound />}
                title={text.empty}
                hint={text.emptyHint}
                action={
                  <Button tone="primary" onClick={() => onOpen({ kind: "create" })}>
                    {text.create}
                  </Button>
                }
              />
            )
          }
        />
      )}
    </Card>
  );
}

/** Disables an enabled key and enables a disabled one: at once, and it can be taken back. */
function useSwitch(): (key: Key) => void {
  const { keys: text } = useText();
  const toast = useToast();
  const { invalidate } = useInvalidate();
  const enable = useMutation(KeyService.method.enableKey, { onSuccess: invalidate });
  const disable = useMutation(KeyService.method.disableKey, { onSuccess: invalidate });
  const fail = (error: Error): void => toast({ title: error.message });
  const turnOn = ({ keyId, name }: Key): void =>
    enable.mutate(
      { keyId },
      { onSuccess: () => toast({ title: text.didEnable(name || text.unnamed) }), onError: fail },
    );
  const turnOff = (key: Key): void =>
    disable.mutate(
      { keyId: key.keyId },
      {
        onSuccess: () =>
          toast({
            title: text.didDisable(key.name || text.unnamed),
            description: text.didDisableNote,
            undo: () => turnOn(key),
          }),
        onError: fail,
      },
    );
  return (key) => (key.state === KeyState.ENABLED ? turnOff(key) : turnOn(key));
}

/** Makes lists of keys be asked for anew. */
function useInvalidate(): { invalidate: () => Promise<void> } {
  const queries = useQueryClient();
  return { invalidate: () => queries.invalidateQueries() };
}

function Windows({
  open,
  onOpen,
  onClose,
}: {
  open: Open | undefined;
  onOpen: (open: Open) => void;
  onClose: () => void;
}) {
  const { invalidate } = useInvalidate();
  if (open === undefined) return null;
  if (open.kind === "once") return <SecretDialog {...open} onClose={onClose} />;
  if (open.kind === "delete")
    return <DeleteDialog key={open.key.keyId} apiKey={open.key} onClose={onClose} />;
  const onSecret = (key: Key, secret: string): void => {
    void invalidate();
    onOpen({ kind: "once", apiKey: key, secret, isAgain: open.kind === "again" || key.canReveal });
  };
  if (open.kind === "again") {
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
  const toast = useToast();
  const { invalidate } = useInvalidate();
  const remove = useMutation(KeyService.method.deleteKey, {
    onSuccess: async () => {
      onClose();
      toast({ title: text.didDelete(apiKey.name || text.unnamed) });
      await invalidate();
    },
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
    >
      <p>{text.removeText}</p>
      <p className="mt-2 font-medium text-ink">
        {used === undefined
          ? text.removeUnused
          : text.removeUsed(relativeText(msOf(used), { now, language }))}
      </p>
      <ErrorNote error={remove.error} />
    </Confirm>
  );
}
