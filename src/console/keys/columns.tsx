/** The columns of lists of keys. */
import { Ban, CircleCheck, Copy, Pencil, Trash2 } from "lucide-react";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { useNow } from "../common/clock.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { nanosOf, usd } from "../common/money.ts";
import { msOf } from "../common/time.ts";
import { ActionMenu, type MenuItem } from "../ui/menu.tsx";
import { Amount, Badge, Time } from "../ui/show.tsx";
import type { Column } from "../ui/table.tsx";

/** What can be done with a key. */
export interface KeyActions {
  readonly onEdit: (key: Key) => void;
  readonly onAgain: (key: Key) => void;
  readonly onDelete: (key: Key) => void;
  readonly onSwitch: (key: Key) => void;
}

/** The columns, with the actions in the last one where there are any. */
export function keyColumns({
  texts: { keys: text, common },
  actions,
}: {
  texts: Texts;
  actions?: KeyActions;
}): Column<Key>[] {
  const menu: Column<Key>[] =
    actions === undefined
      ? []
      : [
          {
            id: "menu",
            title: <span className="sr-only">{common.actions("")}</span>,
            isTight: true,
            cell: (key) => <KeyMenu apiKey={key} text={text} common={common} {...actions} />,
          },
        ];
  return [
    {
      id: "name",
      title: text.name,
      cell: ({ name }) => (
        <span className="block max-w-56 truncate font-medium" title={name}>
          {name || <span className="text-muted">{text.unnamed}</span>}
        </span>
      ),
    },
    {
      id: "masked",
      title: text.secret,
      from: "sm",
      cell: ({ masked }) => <span className="font-mono text-xs whitespace-nowrap">{masked}</span>,
    },
    { id: "state", title: common.status, cell: (key) => <KeyBadge apiKey={key} /> },
    {
      id: "models",
      title: text.models,
      from: "lg",
      cell: ({ models }) => (
        <span className="whitespace-nowrap" title={models.join("\n")}>
          {models.length === 0 ? text.allModels : text.someModels(models.length)}
        </span>
      ),
    },
    {
      id: "spent",
      title: text.spent,
      isNumber: true,
      from: "md",
      cell: ({ spent, spendLimit }) => (
        <>
          <Amount money={nanosOf(spent)} />
          {spendLimit !== undefined && (
            <span className="block text-xs text-muted">
              {text.ofLimit(usd(nanosOf(spendLimit)))}
            </span>
          )}
        </>
      ),
    },
    {
      id: "used",
      title: text.lastUsed,
      from: "md",
      cell: ({ lastUseTime }) => <Time isRelative time={lastUseTime} none={text.neverUsed} />,
    },
    {
      id: "created",
      title: text.created,
      from: "xl",
      cell: ({ createTime }) => <Time isRelative time={createTime} />,
    },
    ...menu,
  ];
}

function KeyMenu({
  apiKey: key,
  text,
  common,
  onEdit,
  onAgain,
  onDelete,
  onSwitch,
}: KeyActions & { apiKey: Key; text: Texts["keys"]; common: Texts["common"] }) {
  if (key.state === KeyState.DELETED) return null;
  const isEnabled = key.state === KeyState.ENABLED;
  const again: MenuItem[] = key.canReveal
    ? [{ label: text.copyAgain, icon: <Copy aria-hidden="true" />, onSelect: () => onAgain(key) }]
    : [];
  return (
    <ActionMenu
      label={common.actions(key.name || key.masked)}
      items={[
        ...again,
        { label: text.edit, icon: <Pencil aria-hidden="true" />, onSelect: () => onEdit(key) },
        {
          label: isEnabled ? text.disable : text.enable,
          icon: isEnabled ? <Ban aria-hidden="true" /> : <CircleCheck aria-hidden="true" />,
          onSelect: () => onSwitch(key),
        },
        {
          label: text.remove,
          icon: <Trash2 aria-hidden="true" />,
          isDanger: true,
          onSelect: () => onDelete(key),
        },
      ]}
    />
  );
}

function KeyBadge({ apiKey: { state, expireTime } }: { apiKey: Key }) {
  const { keys: text } = useText();
  const now = useNow();
  if (state === KeyState.DELETED) return <Badge tone="neutral">{text.deleted}</Badge>;
  if (state === KeyState.DISABLED) return <Badge tone="warn">{text.disabled}</Badge>;
  if (expireTime !== undefined && msOf(expireTime) <= now) {
    return <Badge tone="bad">{text.expired}</Badge>;
  }
  return <Badge tone="good">{text.enabled}</Badge>;
}
