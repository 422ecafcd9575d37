/** Menus that open under a button. */
import { Menu as Base } from "@base-ui/react/menu";
import { clsx } from "clsx";
import { Check, MoreHorizontal } from "lucide-react";
import type { ReactNode } from "react";
import { buttonClass, type ButtonTone } from "./button.tsx";

export interface MenuItem {
  readonly label: ReactNode;
  readonly icon?: ReactNode;
  readonly onSelect: () => void;
  readonly isDanger?: boolean;
  readonly isDisabled?: boolean;
}

const popupClass =
  "rise min-w-44 max-w-[calc(100vw-1rem)] rounded-xl bg-surface p-1 shadow-float outline-none";

const itemClass =
  "flex items-center gap-2.5 rounded-lg px-2.5 py-1.5 text-[0.8125rem] outline-none select-none " +
  "data-highlighted:bg-hover data-disabled:opacity-50 [&_svg]:size-4 [&_svg]:shrink-0";

/** A menu of actions. */
export function ActionMenu({ label, items }: { label: string; items: readonly MenuItem[] }) {
  return (
    <Base.Root>
      <Base.Trigger aria-label={label} className={buttonClass("quiet", "icon")}>
        <MoreHorizontal aria-hidden="true" />
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner side="bottom" align="end" sideOffset={4} className="z-50 outline-none">
          <Base.Popup className={popupClass}>
            {items.map((item, index) => (
              <Base.Item
                // oxlint-disable-next-line react/no-array-index-key -- a menu's items do not move
                key={index}
                disabled={item.isDisabled === true}
                onClick={item.onSelect}
                className={clsx(itemClass, item.isDanger === true && "text-bad")}
              >
                {item.icon}
                {item.label}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

const noItems: readonly MenuItem[] = [];

export interface Choice<Value extends string> {
  readonly value: Value;
  readonly label: string;
}

/** A group of choices, of which one is chosen. */
export interface ChoiceGroup<Value extends string = string> {
  readonly label: string;
  readonly value: Value;
  readonly choices: readonly Choice<Value>[];
  readonly onChoose: (value: Value) => void;
}

/** A menu of choices. */
export function ChoiceMenu<Value extends string>({
  label,
  trigger,
  groups,
  head,
  footer = noItems,
  tone = "quiet",
  isBusy = false,
}: {
  label: string;
  /** The prominence of its button. Quiet by default. */
  tone?: ButtonTone;
  isBusy?: boolean;
  trigger: ReactNode;
  groups: readonly ChoiceGroup<Value>[];
  /** Content above the choices. */
  head?: ReactNode;
  footer?: readonly MenuItem[];
}) {
  return (
    <Base.Root>
      <Base.Trigger
        aria-label={label}
        disabled={isBusy}
        className={clsx(buttonClass(tone), tone === "quiet" && "px-2")}
      >
        {trigger}
      </Base.Trigger>
      <Base.Portal>
        <Base.Positioner side="bottom" align="end" sideOffset={4} className="z-50 outline-none">
          <Base.Popup className={popupClass}>
            {head !== undefined && <div className="px-2.5 py-1.5">{head}</div>}
            {groups.map((group) => (
              <Choices key={group.label} group={group} />
            ))}
            {footer.length > 0 && (groups.length > 0 || head !== undefined) && (
              <Base.Separator className="my-1 h-px bg-line" />
            )}
            {footer.map((item, index) => (
              // oxlint-disable-next-line react/no-array-index-key -- a menu's items do not move
              <Base.Item key={index} onClick={item.onSelect} className={itemClass}>
                {item.icon}
                {item.label}
              </Base.Item>
            ))}
          </Base.Popup>
        </Base.Positioner>
      </Base.Portal>
    </Base.Root>
  );
}

function Choices<Value extends string>({ group }: { group: ChoiceGroup<Value> }) {
  return (
    <Base.RadioGroup
      value={group.value}
      onValueChange={(value: Value) => group.onChoose(value)}
      aria-label={group.label}
    >
      <div aria-hidden="true" className="px-2.5 pt-1.5 pb-1 text-xs text-muted">
        {group.label}
      </div>
      {group.choices.map(({ value, label: text }) => (
        <Base.RadioItem key={value} value={value} closeOnClick className={itemClass}>
          <span className="flex-1">{text}</span>
          <Base.RadioItemIndicator>
            <Check aria-hidden="true" />
          </Base.RadioItemIndicator>
        </Base.RadioItem>
      ))}
    </Base.RadioGroup>
  );
}
