/** Switches between what was and what happens. */
import { clsx } from "clsx";
import { useText } from "../language.tsx";
import { buttonClass } from "./button.tsx";

/** A button that stays pressed. */
export function LiveSwitch({
  isOn,
  onChange,
}: {
  isOn: boolean;
  onChange: (isOn: boolean) => void;
}) {
  const { calls } = useText();
  return (
    <button
      type="button"
      aria-pressed={isOn}
      onClick={() => onChange(!isOn)}
      className={clsx(buttonClass(), isOn && "border-good! text-good!")}
    >
      <span aria-hidden="true" className="relative flex size-2">
        {isOn && <span className="absolute inset-0 animate-ping rounded-full bg-good opacity-60" />}
        <span className={clsx("size-2 rounded-full", isOn ? "bg-good" : "bg-line-strong")} />
      </span>
      {calls.live}
    </button>
  );
}
