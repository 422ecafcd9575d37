/** API keys: the list, and everything that can be done with them. */
import { useMutation } from "@connectrpc/connect-query";
import { useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { KeyRound, Plus } from "lucide-react";
import { useState } from "react";
import { CodeAction } from "../../../gen/uas/account/v1/session_pb.ts";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { apiOrigin } from "../common/api.ts";
import { useNow } from "../common/clock.tsx";
import { useLanguage, useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd } from "../common/money.ts";
import { useAccountId } from "../common/session.tsx";
import { snippets } from "../common/snippets.ts";
import { dayText, msOf, relativeText, timestampOf } from "../common/time.ts";
import { cheapestTextModel, usePrices } from "../models/prices.tsx";
import { BudgetFields, type BudgetForm, budgetForm, budgetsOf } from "../ui/budget-fields.tsx";
import { Button } from "../ui/button.tsx";
import { Card, Empty, PageHead } from "../ui/card.tsx";
import { ActionCode, codeDigits } from "../ui/code-field.tsx";
import { CodeTabs } from "../ui/code.tsx";
import { Confirm } from "../ui/dialog.tsx";
import { CheckField, Segments, SelectField, TextField } from "../ui/field.tsx";
import { FilterBar, isFound, SearchField } from "../ui/filter-bar.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { OnceDialog } from "../ui/once-dialog.tsx";
import { areRates, RateFields, type RateForm, rateForm, ratesOf } from "../ui/rate-fields.tsx";
import { QueryTable } from "../ui/table.tsx";
import { useErrorToast, useToast } from "../ui/toast.tsx";
import { keyColumns } from "./columns.tsx";
import { useKeys } from "./keys.tsx";

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

// The form that creates and changes an API key.

/** The expiry of a key in days; `keep`: the current one. */
const expiries = ["never", "7", "30", "90", "365", "keep"] as const;

type Expiry = (typeof expiries)[number];

interface Form {
  readonly name: string;
  /** `undefined`: all models. */
  readonly models: readonly string[] | undefined;
  readonly expiry: Expiry;
  readonly limit: string;
  readonly budgets: BudgetForm;
  readonly rates: RateForm;
}

const dayMs = 86_400_000;

function formOf(key: Key | undefined): Form {
  if (key === undefined) {
    const name = `dev-${dayText(Date.now())}`;
    const open = { budgets: budgetForm([]), rates: rateForm(undefined) };
    return { name, models: undefined, expiry: "never", limit: "", ...open };
  }
  return {
    name: key.name,
    models: key.models.length === 0 ? undefined : key.models,
    expiry: key.expireTime === undefined ? "never" : "keep",
    limit: key.spendLimit === undefined ? "" : decimalUsd(nanosOf(key.spendLimit)),
    budgets: budgetForm(key.budgets),
    rates: rateForm(key.rateLimits),
  };
}

/** The members of a request for the values of the form. */
function membersOf({ name, models, expiry, limit, budgets, rates }: Form, key: Key | undefined) {
  const nanos = limit.trim() === "" ? undefined : parseUsd(limit);
  const rateLimits = ratesOf(rates);
  const days = Number(expiry);
  const expireTime =
    expiry === "keep"
      ? key?.expireTime
      : days > 0
        ? timestampOf(Date.now() + days * dayMs)
        : undefined;
  return {
    name: name.trim(),
    models: [...(models ?? [])],
    ...(expireTime !== undefined && { expireTime }),
    ...(nanos !== undefined && { spendLimit: moneyOf(nanos) }),
    budgets: budgetsOf(budgets) ?? [],
    ...(rateLimits && { rateLimits }),
  };
}

function isLimit(limit: string): boolean {
  return limit.trim() === "" || (parseUsd(limit) ?? 0n) > 0n;
}

/** Creates a key, or changes the one that is given. */
function EditDialog({
  apiKey,
  onClose,
  onCreated,
}: {
  apiKey: Key | undefined;
  onClose: () => void;
  onCreated: (key: Key, secret: string) => void;
}) {
  const { keys: text, common } = useText();
  const accountId = useAccountId();
  const done = useDone(onClose);
  const [form, setForm] = useState(() => formOf(apiKey));
  const [isTried, setTried] = useState(false);
  const create = useMutation(KeyService.method.createKey, {
    onSuccess: ({ key, secret }) => key && onCreated(key, secret),
  });
  const update = useMutation(KeyService.method.updateKey, {
    onSuccess: ({ key }) => done(text.didSave(key?.name || text.unnamed)),
  });
  const submit = (): void => {
    setTried(true);
    const isBudget = budgetsOf(form.budgets) !== undefined;
    if (!isLimit(form.limit) || !isBudget || !areRates(form.rates)) return;
    const members = membersOf(form, apiKey);
    if (apiKey === undefined) return create.mutate({ accountId, ...members });
    const updateMask = {
      paths: ["name", "models", "expire_time", "spend_limit", "budgets", "rate_limits"],
    };
    update.mutate({ key: { keyId: apiKey.keyId, ...members }, updateMask });
  };
  return (
    <FormDialog
      onClose={onClose}
      title={apiKey === undefined ? text.createTitle : text.editTitle(apiKey.name || text.unnamed)}
      onSubmit={submit}
      submit={apiKey === undefined ? text.create : common.save}
      isBusy={create.isPending || update.isPending}
      error={create.error ?? update.error}
    >
      <Fields form={form} apiKey={apiKey} onChange={setForm} isTried={isTried} />
    </FormDialog>
  );
}

function Fields({
  form,
  apiKey,
  onChange,
  isTried,
}: {
  form: Form;
  apiKey: Key | undefined;
  onChange: (form: Form) => void;
  isTried: boolean;
}) {
  const { keys: text } = useText();
  const kept = apiKey?.expireTime;
  const choices = expiries
    .filter((each) => each !== "keep" || kept !== undefined)
    .map((value) => ({
      value,
      label:
        value === "never"
          ? text.expiresNever
          : value === "keep" && kept !== undefined
            ? text.expiresKeep(dayText(msOf(kept)))
            : text.expiresDays(Number(value)),
    }));
  return (
    <>
      <TextField
        label={text.name}
        hint={text.nameHint}
        value={form.name}
        maxLength={200}
        autoFocus
        onFocus={(event) => event.target.select()}
        onChange={(event) => onChange({ ...form, name: event.target.value })}
      />
      <Models form={form} onChange={onChange} />
      <SelectField
        label={text.expires}
        value={form.expiry}
        choices={choices}
        onChoose={(expiry) => onChange({ ...form, expiry })}
      />
      <TextField
        label={text.limit}
        hint={text.limitHint}
        error={isTried && !isLimit(form.limit) ? text.limitWrong : undefined}
        value={form.limit}
        inputMode="decimal"
        placeholder="25.00"
        onChange={(event) => onChange({ ...form, limit: event.target.value })}
      />
      <BudgetFields form={form.budgets} onChange={(budgets) => onChange({ ...form, budgets })} />
      <RateFields form={form.rates} onChange={(rates) => onChange({ ...form, rates })} />
    </>
  );
}

function Models({ form, onChange }: { form: Form; onChange: (form: Form) => void }) {
  const { keys: text } = useText();
  const { data } = usePrices();
  const { models } = form;
  // A model that is no longer configured is listed too, so that it can be removed.
  const known = [
    ...new Set([...(models ?? []), ...(data ?? []).map((each) => each.modelKey)]),
  ].toSorted();
  const set = (model: string, isChosen: boolean): void => {
    const others = (models ?? []).filter((each) => each !== model);
    onChange({ ...form, models: isChosen ? [...others, model] : others });
  };
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1.5 text-[0.8125rem] font-medium">{text.modelsLabel}</legend>
      <Segments
        label={text.modelsLabel}
        value={models === undefined ? "all" : "some"}
        choices={[
          { value: "all", label: text.modelsAll },
          { value: "some", label: text.modelsSome },
        ]}
        onChoose={(value) => onChange({ ...form, models: value === "all" ? undefined : [] })}
      />
      {models !== undefined && (
        <div className="mt-2.5 flex max-h-44 flex-col gap-2 overflow-y-auto rounded-lg border border-line p-3">
          {known.map((model) => (
            <CheckField
              key={model}
              label={<span className="font-mono text-xs">{model}</span>}
              checked={models.includes(model)}
              onChange={(event) => set(model, event.target.checked)}
            />
          ))}
        </div>
      )}
    </fieldset>
  );
}

// Dialogs that show the secret of a key: once when it is created, and again after a code by SMS.

/** Shows the secret of a key, with examples that use it. */
function SecretDialog({
  secret,
  apiKey,
  isAgain,
  onClose,
}: {
  secret: string;
  apiKey: Key;
  /** Whether it can be shown again. */
  isAgain: boolean;
  onClose: () => void;
}) {
  const { keys: text } = useText();
  const prices = usePrices();
  const model = apiKey.models[0] ?? cheapestTextModel(prices.data);
  const url = `${apiOrigin()}/v1`;
  return (
    <OnceDialog
      width="wide"
      title={text.onceTitle}
      description={isAgain ? text.onceHintAgain : text.onceHint}
      secret={secret}
      label={text.secret}
      copy={text.onceCopy}
      file={{
        label: text.onceEnv,
        name: ".env",
        content: `UAS_API_KEY=${secret}\nOPENAI_BASE_URL=${url}\nOPENAI_API_KEY=${secret}\n`,
      }}
      warning={isAgain ? text.onceWarningAgain : text.onceWarning}
      onClose={onClose}
    >
      {model !== undefined && (
        <div className="min-w-0">
          <h3 className="mb-2 text-[0.8125rem] font-medium">{text.onceUse}</h3>
          <CodeTabs
            label={text.onceSnippets}
            versions={snippets({ origin: apiOrigin(), model, key: secret })}
          />
        </div>
      )}
    </OnceDialog>
  );
}

/** Asks for a code by SMS, and gets the secret of a key for it. */
function RevealDialog({
  apiKey,
  onClose,
  onSecret,
}: {
  apiKey: Key;
  onClose: () => void;
  onSecret: (secret: string) => void;
}) {
  const { keys: text } = useText();
  const [code, setCode] = useState("");
  const reveal = useMutation(KeyService.method.revealKey, {
    onSuccess: ({ secret }) => onSecret(secret),
    // The secret is in the dialog that follows, and not in the cache of queries.
    gcTime: 0,
  });
  return (
    <FormDialog
      onClose={onClose}
      title={text.revealTitle(apiKey.name || apiKey.masked)}
      onSubmit={() => reveal.mutate({ keyId: apiKey.keyId, code })}
      submit={text.revealConfirm}
      isBusy={reveal.isPending}
      canSubmit={code.length === codeDigits}
      error={reveal.error}
    >
      <ActionCode
        action={CodeAction.REVEAL_KEY}
        subjectId={apiKey.keyId}
        value={code}
        onChange={setCode}
      />
    </FormDialog>
  );
}
