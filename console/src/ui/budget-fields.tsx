/** Budgets of a key or an account: as fields of a form, and as lines of a list. */
import { type Budget, BudgetPeriod } from "../../../gen/uas/type/v1/budget_pb.ts";
import { useText } from "../common/language.tsx";
import { decimalUsd, moneyOf, nanosOf, parseUsd, usd } from "../common/money.ts";
import { allZones, localZone, msOf, timeText } from "../common/time.ts";
import { SelectField, TextField } from "./field.tsx";

const periods = [BudgetPeriod.DAY, BudgetPeriod.WEEK, BudgetPeriod.MONTH] as const;

type Period = (typeof periods)[number];

/** The typed values: an amount for each period, empty for none, and the time zone of all. */
export interface BudgetForm {
  readonly amounts: Readonly<Record<Period, string>>;
  readonly zone: string;
}

/** The form of present budgets. */
export function budgetForm(budgets: readonly Budget[]): BudgetForm {
  const amountOf = (period: Period): string => {
    const found = budgets.find((budget) => budget.period === period);
    return found === undefined ? "" : decimalUsd(nanosOf(found.amount));
  };
  const [day, week, month] = periods;
  const amounts = { [day]: amountOf(day), [week]: amountOf(week), [month]: amountOf(month) };
  return { amounts, zone: budgets[0]?.timeZone || "UTC" };
}

/** The budgets of a form, for a request; `undefined` while an amount is wrong. */
export function budgetsOf({ amounts, zone: timeZone }: BudgetForm) {
  if (!periods.every((period) => isAmount(amounts[period]))) return undefined;
  return periods
    .filter((period) => amounts[period].trim() !== "")
    .map((period) => ({ period, timeZone, amount: moneyOf(parseUsd(amounts[period]) ?? 0n) }));
}

function isAmount(text: string): boolean {
  return text.trim() === "" || (parseUsd(text) ?? 0n) > 0n;
}

/** An amount for each period, and the zone in which they begin. */
export function BudgetFields({
  form,
  onChange,
}: {
  form: BudgetForm;
  onChange: (form: BudgetForm) => void;
}) {
  const { budgets: text } = useText();
  const hasAny = periods.some((period) => form.amounts[period].trim() !== "");
  const zones = [...new Set(["UTC", localZone(), form.zone, ...allZones()])];
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1.5 text-[0.8125rem] font-medium">{text.title}</legend>
      <p className="mb-2.5 text-xs text-muted">{text.hint}</p>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-3">
        {periods.map((period) => (
          <TextField
            key={period}
            label={text.periods[period]}
            error={isAmount(form.amounts[period]) ? undefined : text.amountWrong}
            value={form.amounts[period]}
            inputMode="decimal"
            placeholder="–"
            onChange={({ target }) =>
              onChange({ ...form, amounts: { ...form.amounts, [period]: target.value } })
            }
          />
        ))}
      </div>
      {hasAny && (
        <SelectField
          className="mt-3"
          label={text.zone}
          value={form.zone}
          choices={zones.map((value) => ({ value, label: value.replaceAll("_", " ") }))}
          onChoose={(zone) => onChange({ ...form, zone })}
        />
      )}
    </fieldset>
  );
}

/** The spent part of each budget; the time of its reset as a tooltip. */
export function BudgetLines({ budgets }: { budgets: readonly Budget[] }) {
  const { budgets: text } = useText();
  return budgets.map(({ period, amount, spent, resetTime }) => (
    <span
      key={period}
      className="block text-xs text-muted"
      title={resetTime && text.resets(timeText(msOf(resetTime)))}
    >
      {text.line(usd(nanosOf(spent)), usd(nanosOf(amount)), text.words[period] ?? "")}
    </span>
  ));
}
