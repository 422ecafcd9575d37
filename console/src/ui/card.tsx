/** The building blocks of pages: cards, headings, figures, facts, empty states. */
import { clsx } from "clsx";
import { type ReactNode, useEffect } from "react";
import { exactUsd, usd } from "../common/money.ts";

/** A section with a border. */
export function Card({ children, className }: { children: ReactNode; className?: string }) {
  return (
    <section className={clsx("rounded-xl border border-line bg-surface shadow-card", className)}>
      {children}
    </section>
  );
}

/** The head of a card: title, hint and actions. */
export function CardHead({
  title,
  hint,
  actions,
}: {
  title: ReactNode;
  hint?: ReactNode;
  actions?: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 px-5 pt-4 pb-3">
      <div className="min-w-0">
        <h2 className="text-sm font-semibold">{title}</h2>
        {hint !== undefined && <p className="mt-0.5 text-[0.8125rem] text-muted">{hint}</p>}
      </div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </div>
  );
}

/** The head of a page; its title is also the title of the browser's tab. */
export function PageHead({
  title,
  hint,
  actions,
}: {
  title: string;
  hint?: ReactNode;
  actions?: ReactNode;
}) {
  useEffect(() => {
    document.title = `${title} · UAS Gateway`;
  }, [title]);
  return (
    <div className="mb-6 flex flex-wrap items-end justify-between gap-x-6 gap-y-3">
      <div className="min-w-0">
        <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
        {hint !== undefined && <p className="mt-1 max-w-2xl text-muted">{hint}</p>}
      </div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </div>
  );
}

/** A large figure with its label. */
export function Figure({
  label,
  value,
  note,
  title,
}: {
  label: ReactNode;
  value: ReactNode;
  note?: ReactNode;
  title?: string;
}) {
  return (
    <Card className="min-w-0 px-4 py-3.5 sm:px-5 sm:py-4">
      <div className="text-[0.8125rem] text-muted">{label}</div>
      <div
        title={title}
        // The same height with a skeleton.
        className="mt-1.5 h-7 truncate text-xl leading-7 font-semibold tracking-tight tabular-nums sm:h-8 sm:text-2xl sm:leading-8"
      >
        {value}
      </div>
      <div className="mt-1 min-h-[1.15rem] text-xs text-muted">{note}</div>
    </Card>
  );
}

/** An amount as a figure, exact in its tooltip; a skeleton until it is known. */
export function MoneyFigure({
  label,
  nanos,
  note,
}: {
  label: ReactNode;
  nanos: bigint | undefined;
  note?: ReactNode;
}) {
  return (
    <Figure
      label={label}
      value={nanos === undefined ? <Skeleton className="mt-2 h-6 w-24" /> : usd(nanos)}
      {...(nanos !== undefined && { title: exactUsd(nanos) })}
      note={note}
    />
  );
}

/** A list of names and values. */
export function Facts({ rows }: { rows: readonly (readonly [ReactNode, ReactNode])[] }) {
  return (
    <dl className="grid grid-cols-[minmax(7rem,max-content)_minmax(0,1fr)] gap-x-6 gap-y-2.5 text-[0.8125rem]">
      {rows.map(([name, value], index) => (
        // oxlint-disable-next-line react/no-array-index-key -- the order is constant
        <div key={index} className="contents">
          <dt className="text-muted">{name}</dt>
          <dd className="min-w-0 break-words">{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** An empty state: the missing content, and how to get it. */
export function Empty({
  icon,
  title,
  hint,
  action,
}: {
  icon?: ReactNode;
  title: string;
  hint?: ReactNode;
  action?: ReactNode;
}) {
  return (
    <div className="flex flex-col items-center px-6 py-14 text-center">
      {icon !== undefined && (
        <div
          aria-hidden="true"
          className="mb-4 grid size-11 place-items-center rounded-xl border border-line bg-sunken text-muted [&_svg]:size-5"
        >
          {icon}
        </div>
      )}
      <p className="font-medium">{title}</p>
      {hint !== undefined && <div className="mt-1 max-w-md text-muted">{hint}</div>}
      {action !== undefined && <div className="mt-5">{action}</div>}
    </div>
  );
}

/** Reserves the space of something that is loading. */
export function Skeleton({ className }: { className?: string }) {
  return (
    <span
      aria-hidden="true"
      className={clsx("block animate-pulse rounded-md bg-sunken", className)}
    />
  );
}
