/** The columns of a list of API keys. */
import { Ban, CircleCheck, Eye, Pencil, Trash2 } from "lucide-react";
import { type Key, KeyState } from "../../../gen/uas/key/v1/key_pb.ts";
import { useNow } from "../common/clock.tsx";
import { type Texts, useText } from "../common/language.tsx";
import { nanosOf, usd } from "../common/money.ts";
import { msOf } from "../common/time.ts";
import { BudgetLines } from "../ui/budget-fields.tsx";
import { RateLines } from "../ui/rate-fields.tsx";
import { ActionMenu, type MenuItem } from "../ui/menu.tsx";
import { Amount, Badge, Truncated } from "../ui/show.tsx";
import { agoColumn, type Column } from "../ui/table.tsx";

/** The actions on a key. */
export interface KeyActions {
  readonly onEdit: (key: Key) => void;
  readonly onReveal: (key: Key) => void;
  readonly onDelete: (key: Key) => void;
  readonly onSwitch: (key: Key) => void;
}

/** The columns of a list of keys; with `actions`, the last one is a menu. */
export function keyColumns({
  texts: { keys: text, common },
  actions,
}: {
  texts: Texts;
  actions?: KeyActions;
}): Column<Key>[] {
  return [
    {
      id: "name",
      title: text.name,
      cell: ({ name }) => (
        <Truncated text={name || text.unnamed} className="max-w-56 font-medium" />
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
      cell: (key) => <Spent apiKey={key} />,
    },
    agoColumn({
      id: "used",
      title: text.lastUsed,
      from: "md",
      none: text.neverUsed,
      time: ({ lastUseTime }) => lastUseTime,
    }),
    agoColumn({
      id: "created",
      title: text.created,
      from: "xl",
      time: ({ createTime }) => createTime,
    }),
    ...(actions === undefined ? [] : [menuColumn(common.actionsColumn, actions)]),
  ];
}

function Spent({ apiKey: { spent, spendLimit, budgets, rateLimits } }: { apiKey: Key }) {
  const { keys: text } = useText();
  return (
    <>
      <Amount money={nanosOf(spent)} />
      {spendLimit !== undefined && (
        <span className="block text-xs text-muted">{text.ofLimit(usd(nanosOf(spendLimit)))}</span>
      )}
      <BudgetLines budgets={budgets} />
      <RateLines limits={rateLimits} />
    </>
  );
}

function menuColumn(title: string, actions: KeyActions): Column<Key> {
  return {
    id: "menu",
    title: title,
    isTight: true,
    cell: (key) => <KeyMenu apiKey={key} {...actions} />,
  };
}

function KeyMenu({
  apiKey: key,
  onEdit,
  onReveal,
  onDelete,
  onSwitch,
}: KeyActions & { apiKey: Key }) {
  const { keys: text, common } = useText();
  if (key.state === KeyState.DELETED) return null;
  const isEnabled = key.state === KeyState.ENABLED;
  const reveal: MenuItem[] = key.canReveal
    ? [{ label: text.reveal, icon: <Eye aria-hidden="true" />, onSelect: () => onReveal(key) }]
    : [];
  return (
    <ActionMenu
      label={common.actions(key.name || key.masked)}
      items={[
        ...reveal,
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
