/**
 * Tables. Rows come from the gateway a page at a time and in its order, so there is nothing to sort or to group here:
 * a list of columns is all that is needed, and no library for it.
 */
import { clsx } from "clsx";
import type { ReactNode } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "./button.tsx";
import { Skeleton } from "./card.tsx";

export interface Column<Row> {
  readonly id: string;
  readonly title: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
  /** The narrowest window that shows the column. Default: every one. */
  readonly from?: "sm" | "md" | "lg" | "xl";
  /** Whether it is as narrow as its content. */
  readonly isTight?: boolean;
}

export interface TableProps<Row> {
  /** What the rows are; for those who do not see it. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** `undefined` while they are loaded. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** What stands there where there are no rows. */
  readonly empty: ReactNode;
  /** Opens a row by the mouse, wherever it is hit; its cells have a button or a link for the keyboard. */
  readonly onOpen?: (row: Row) => void;
  /** Whether a row is the one that is open. */
  readonly isOpen?: (row: Row) => boolean;
}

const shownFrom = {
  sm: "hidden sm:table-cell",
  md: "hidden md:table-cell",
  lg: "hidden lg:table-cell",
  xl: "hidden xl:table-cell",
} as const;

function cellClass<Row>({ isNumber, from, isTight }: Column<Row>): string {
  return clsx(
    "px-3 py-2.5 first:pl-5 last:pr-5",
    isNumber === true && "text-right",
    from !== undefined && shownFrom[from],
    isTight === true && "w-px whitespace-nowrap",
  );
}

/** A table in a frame that scrolls sideways by itself, so that the page never does. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, empty } = props;
  if (rows?.length === 0) return <>{empty}</>;
  return (
    // A region that scrolls has to be reached by the keyboard.
    <div role="region" aria-label={label} tabIndex={0} className="relative overflow-x-auto">
      <table className="w-full text-[0.8125rem]" aria-busy={rows === undefined}>
        {/* Columns are as wide as what is in them: until that is known, their titles would move. They are
            heard before they are seen. */}
        <thead className={clsx(rows === undefined && "opacity-0")}>
          <tr className="border-b border-line text-left text-xs text-muted">
            {columns.map((column) => (
              <th key={column.id} scope="col" className={clsx(cellClass(column), "font-medium")}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        {rows === undefined ? (
          <tbody key="waiting">
            <Waiting columns={columns} />
          </tbody>
        ) : (
          <tbody key="rows">
            <Rows {...props} rows={rows} />
          </tbody>
        )}
      </table>
    </div>
  );
}

function Rows<Row>({
  columns,
  rows,
  keyOf,
  onOpen,
  isOpen,
}: TableProps<Row> & { rows: readonly Row[] }) {
  return rows.map((row) => (
    <tr
      key={keyOf(row)}
      onClick={onOpen === undefined ? undefined : (event) => onRowClick(event, () => onOpen(row))}
      className={clsx(
        "border-b border-line last:border-0",
        onOpen !== undefined && "cursor-pointer hover:bg-hover",
        isOpen?.(row) === true && "bg-accent-soft",
      )}
    >
      {columns.map((column) => (
        <td key={column.id} className={cellClass(column)}>
          {column.cell(row)}
        </td>
      ))}
    </tr>
  ));
}

/** A click on a button, a link or selected text in a row means that, not the row. */
function onRowClick(event: React.MouseEvent, open: () => void): void {
  const target = event.target as Element;
  if (!event.currentTarget.contains(target)) return;
  if (target.closest("a, button, input, label") !== null) return;
  if ((getSelection()?.toString() ?? "") !== "") return;
  open();
}

const waitingRows = ["a", "b", "c", "d", "e"];

function Waiting<Row>({ columns }: { columns: readonly Column<Row>[] }) {
  return waitingRows.map((row) => (
    <tr key={row} className="border-b border-line last:border-0">
      {columns.map((column) => (
        <td key={column.id} className={cellClass(column)}>
          <Skeleton className="h-[1.15rem] w-full max-w-28" />
        </td>
      ))}
    </tr>
  ));
}

/** Asks for the next page, where there is one. */
export function MoreRows({
  hasMore,
  isBusy,
  onMore,
}: {
  hasMore: boolean;
  isBusy: boolean;
  onMore: () => void;
}) {
  const { common } = useText();
  if (!hasMore) return null;
  return (
    <div className="flex justify-center border-t border-line p-3">
      <Button tone="quiet" isBusy={isBusy} onClick={onMore}>
        {common.more}
      </Button>
    </div>
  );
}

/** The button in the first cell of a row: opens it by the keyboard too. */
export function RowButton({ children, onOpen }: { children: ReactNode; onOpen: () => void }) {
  return (
    <button
      type="button"
      onClick={onOpen}
      className="rounded text-left font-medium underline-offset-4 hover:underline"
    >
      {children}
    </button>
  );
}
