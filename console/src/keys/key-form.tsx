/** The form that creates and changes an API key. */
import { useMutation } from "@connectrpc/connect-query";
import { useState } from "react";
import type { Key } from "../../../gen/uas/key/v1/key_pb.ts";
import { KeyService } from "../../../gen/uas/key/v1/key_service_pb.ts";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd } from "../common/money.ts";
import { useAccountId } from "../common/session.tsx";
import { dayText, msOf, timestampOf } from "../common/time.ts";
import { usePrices } from "../models/prices.tsx";
import { BudgetFields, type BudgetForm, budgetForm, budgetsOf } from "../ui/budget-fields.tsx";
import { CheckField, Segments, SelectField, TextField } from "../ui/field.tsx";
import { FormDialog, useDone } from "../ui/form.tsx";
import { areRates, RateFields, type RateForm, rateForm, ratesOf } from "../ui/rate-fields.tsx";

/** The expiry of a key in days; `keep`: the current one. */
const expiries = ["never", "7", "30", "90", "365", "keep"] as const;

type Expiry = (typeof expiries)[number];

interface Form {
  readonly name: string;
  /** Undefined for all models. */
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

/** Creates a key, or changes the given one. */
export function EditDialog({
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
