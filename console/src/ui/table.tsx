/**
 * Tables. Rows arrive from the gateway page by page and sorted, so there is nothing to sort or to
 * group here: a list of columns is enough, without a library.
 */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { clsx } from "clsx";
import type { ReactNode } from "react";
import { useText } from "../common/language.tsx";
import { Button } from "./button.tsx";
import { Skeleton } from "./card.tsx";
import { ErrorNote, Time } from "./show.tsx";

export interface Column<Row> {
  readonly id: string;
  readonly title: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** Whether it is right-aligned, for numbers. */
  readonly isNumber?: boolean;
  /** The narrowest window that shows the column. All windows by default. */
  readonly from?: "sm" | "md" | "lg" | "xl";
  /** Whether it is as narrow as its content. */
  readonly isTight?: boolean;
}

/**
 * A column of times, as `2 minutes ago`.
 *
 * @param none shown for rows without one. A dash by default
 */
export function agoColumn<Row>({
  time,
  none = "—",
  ...column
}: Omit<Column<Row>, "cell"> & {
  time: (row: Row) => Timestamp | undefined;
  none?: ReactNode;
}): Column<Row> {
  return { ...column, cell: (row) => <Time isRelative time={time(row)} none={none} /> };
}

export interface TableProps<Row> {
  /** Its name for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  /** `undefined` while they are loaded. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** Shown if there are no rows. */
  readonly empty: ReactNode;
  /**
   * Opens a row on a click anywhere in it; for the keyboard, one of its cells has a button or a
   * link.
   */
  readonly onOpen?: (row: Row) => void;
  /** Whether the details of a row are open. */
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

/** A table that scrolls sideways by itself, so that the page does not. */
export function Table<Row>(props: TableProps<Row>) {
  const { label, columns, rows, empty } = props;
  if (rows?.length === 0) return <>{empty}</>;
  return (
    // A region that scrolls must be focusable.
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

/** A click on a button, a link or selected text does not open the row. */
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

/** The query of a table; for a list in pages, with the next page. */
export interface RowsQuery {
  readonly error: unknown;
  readonly refetch: () => unknown;
  readonly hasNextPage?: boolean;
  readonly isFetchingNextPage?: boolean;
  readonly fetchNextPage?: () => unknown;
}

/**
 * A table of the rows of a query, with its error instead of the rows, and a button for the next
 * page.
 */
export function QueryTable<Row>({ query, ...table }: TableProps<Row> & { query: RowsQuery }) {
  const { error, refetch, hasNextPage = false, isFetchingNextPage = false, fetchNextPage } = query;
  if (error !== null) {
    return (
      <div className="p-5">
        <ErrorNote error={error} onRetry={() => void refetch()} />
      </div>
    );
  }
  return (
    <>
      <Table {...table} />
      <MoreRows
        hasMore={hasNextPage}
        isBusy={isFetchingNextPage}
        onMore={() => void fetchNextPage?.()}
      />
    </>
  );
}

function MoreRows({
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

/**
 * The time in the first cell of a row, as the button that opens it. @param label its name for
 * screen readers
 */
export function RowTime({
  time,
  label,
  onOpen,
}: {
  time: Timestamp | undefined;
  label: string;
  onOpen: () => void;
}) {
  return (
    <RowButton onOpen={onOpen}>
      <span className="sr-only">{label}</span>
      <span aria-hidden="true">
        <Time time={time} />
      </span>
    </RowButton>
  );
}

/** The button in the first cell of a row, which opens it by keyboard too. */
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
