/** The filters of deliveries. */
import type { ReactNode } from "react";
import { useText } from "../language.tsx";
import { defined, deliveryStates, type DeliverySearch, oneOf } from "../search.ts";
import { Button } from "../ui/button.tsx";
import { FilterField } from "../ui/filter-field.tsx";
import { SelectField } from "../ui/select.tsx";
import { states } from "./delivery-states.ts";

/** What deliveries are narrowed to. */
type Filters = Omit<DeliverySearch, "delivery">;

/** The row of filters. Each change is told at once. */
export function DeliveryFilters({
  filters,
  onFilter,
  children,
}: {
  filters: Filters;
  onFilter: (filters: Filters) => void;
  /** More filters. */
  children?: ReactNode;
}) {
  const { webhooks: text, common } = useText();
  const { state, origin, task } = filters;
  const set = (change: { [Name in keyof Filters]: Filters[Name] | undefined }): void =>
    onFilter(defined({ ...filters, ...change }));
  return (
    <div
      role="search"
      aria-label={`${text.deliveries}: ${common.filters}`}
      className="grid grid-cols-2 gap-2 border-b border-line px-5 pb-4 sm:flex sm:flex-wrap"
    >
      <SelectField
        label={common.status}
        isLabelHidden
        className="sm:w-40"
        value={state ?? ""}
        choices={[
          { value: "", label: text.anyState },
          ...deliveryStates.map((value) => ({ value, label: text.states[states[value]] ?? "" })),
        ]}
        onChoose={(value) => set({ state: oneOf(value, deliveryStates) })}
      />
      {children}
      <FilterField
        key={`origin ${origin}`}
        label={text.receiver}
        value={origin}
        onChoose={(value) => set({ origin: value && originOf(value) })}
        className="sm:w-52"
      />
      <FilterField
        key={`task ${task}`}
        label={text.taskId}
        value={task}
        onChoose={(value) => set({ task: value })}
        className="sm:w-52"
      />
      {Object.keys(filters).length > 0 && (
        <Button tone="quiet" onClick={() => onFilter({})}>
          {common.clearFilters}
        </Button>
      )}
    </div>
  );
}

/** A receiver as the contract names it, of whatever was pasted: a callback address, or a host without its scheme. */
function originOf(typed: string): string {
  const url = URL.parse(typed) ?? URL.parse(`https://${typed}`);
  return url === null || url.origin === "null" ? typed : url.origin;
}
