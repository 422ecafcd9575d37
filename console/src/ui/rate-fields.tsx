/** Rate limits of a key or an account: as fields of a form, and as lines of a list. */
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import type { RateLimits } from "../../../gen/uas/type/v1/rate_limits_pb.ts";
import { useText } from "../common/language.tsx";
import { TextField } from "./field.tsx";

const kinds = ["rpm", "tpm", "concurrency"] as const;

type Kind = (typeof kinds)[number];

/** The typed values; empty for no limit. */
export type RateForm = Readonly<Record<Kind, string>>;

/** The form of present limits. */
export function rateForm(limits: RateLimits | undefined): RateForm {
  const textOf = (kind: Kind): string => limits?.[kind]?.toString() ?? "";
  return { rpm: textOf("rpm"), tpm: textOf("tpm"), concurrency: textOf("concurrency") };
}

/** Whether every field is a limit or empty. */
export function areRates(form: RateForm): boolean {
  return kinds.every((kind) => isRate(form[kind]));
}

/** The limits of a form, for a request; undefined if it sets none. */
export function ratesOf(form: RateForm): Partial<Record<Kind, number>> | undefined {
  const set = kinds.filter((kind) => form[kind].trim() !== "");
  if (set.length === 0) return undefined;
  return Object.fromEntries(set.map((kind) => [kind, Number(form[kind])]));
}

const int32Max = 2_147_483_647;

function isRate(text: string): boolean {
  if (text.trim() === "") return true;
  return /^\d+$/.test(text.trim()) && Number(text) >= 1 && Number(text) <= int32Max;
}

/** A field for each kind of limit. */
export function RateFields({
  form,
  onChange,
}: {
  form: RateForm;
  onChange: (form: RateForm) => void;
}) {
  const { rates: text } = useText();
  return (
    <fieldset className="min-w-0">
      <legend className="mb-1.5 text-[0.8125rem] font-medium">{text.title}</legend>
      <p className="mb-2.5 text-xs text-muted">{text.hint}</p>
      <div className="grid grid-cols-1 gap-3 sm:grid-cols-3">
        {kinds.map((kind) => (
          <TextField
            key={kind}
            label={text.kinds[kind]}
            error={isRate(form[kind]) ? undefined : text.wrong}
            value={form[kind]}
            inputMode="numeric"
            placeholder="–"
            onChange={({ target }) => onChange({ ...form, [kind]: target.value })}
          />
        ))}
      </div>
    </fieldset>
  );
}

/**
 * The maximum wait of a call for capacity, as text for editing: in seconds, empty for the default.
 */
export function waitForm(wait: Duration | undefined): string {
  return wait === undefined ? "" : String(durationMs(wait) / 1_000);
}

/** Whether a text is empty, or a wait that the contract accepts. */
export function isWait(typed: string): boolean {
  const text = typed.trim();
  return text === "" || (/^\d{1,2}(\.\d{1,3})?$/.test(text) && Number(text) <= waitSecondsMax);
}

const waitSecondsMax = 30;

/** The wait of a form, for a request; undefined for the default. */
export function waitOf(typed: string): Duration | undefined {
  const text = typed.trim();
  return text === "" ? undefined : durationFromMs(Math.round(Number(text) * 1_000));
}

/** The field for the time that calls over a limit wait before they are refused. */
export function WaitField({
  value,
  onChange,
}: {
  value: string;
  onChange: (value: string) => void;
}) {
  const { rates: text } = useText();
  return (
    <TextField
      label={text.wait}
      hint={text.waitHint}
      error={isWait(value) ? undefined : text.waitWrong}
      value={value}
      inputMode="decimal"
      placeholder="–"
      onChange={({ target }) => onChange(target.value)}
    />
  );
}

/** The limits, a line each. */
export function RateLines({ limits }: { limits: RateLimits | undefined }) {
  const { rates: text } = useText();
  return kinds.map((kind) => {
    const limit = limits?.[kind];
    return limit === undefined ? null : (
      <span key={kind} className="block text-xs text-muted">
        {text.lines[kind](limit === int32Max ? "∞" : limit.toLocaleString())}
      </span>
    );
  });
}
