/** The columns of the list of redeem codes. */
import { Link } from "@tanstack/react-router";
import { TopUpSource } from "../../../gen/uas/billing/v1/billing_pb.ts";
import { type RedeemCode, RedeemCodeState } from "../../../gen/uas/billing/v1/redeem_pb.ts";
import type { Texts } from "../language.tsx";
import { Badge, type Tone } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Amount, Time } from "../ui/show.tsx";
import type { Column } from "../ui/table.tsx";

const tones: Readonly<Record<RedeemCodeState, Tone>> = {
  [RedeemCodeState.UNSPECIFIED]: "neutral",
  [RedeemCodeState.OPEN]: "info",
  [RedeemCodeState.REDEEMED]: "good",
  [RedeemCodeState.REVOKED]: "bad",
  [RedeemCodeState.EXPIRED]: "neutral",
};

/** The columns. */
export function codeColumns({
  texts: {
    operator: { codes: text },
    common,
  },
  accountNames,
  onRevoke,
}: {
  texts: Texts;
  accountNames: ReadonlyMap<string, string>;
  onRevoke: (code: RedeemCode) => void;
}): Column<RedeemCode>[] {
  return [
    {
      id: "code",
      title: text.code,
      cell: ({ hint }) => <span className="font-mono text-xs whitespace-nowrap">…{hint}</span>,
    },
    {
      id: "state",
      title: common.status,
      cell: ({ state }) => <Badge tone={tones[state] ?? "neutral"}>{text.states[state]}</Badge>,
    },
    {
      id: "worth",
      title: text.worth,
      isNumber: true,
      cell: ({ amount }) => <Amount money={amount} />,
    },
    {
      id: "kind",
      title: text.bookedAs,
      from: "lg",
      cell: ({ source }) => (source === TopUpSource.PAYMENT ? text.payment : text.grant),
    },
    {
      id: "note",
      title: text.note,
      from: "md",
      cell: ({ note }) => (
        <span className="block max-w-56 truncate" title={note}>
          {note || <span className="text-muted">—</span>}
        </span>
      ),
    },
    {
      id: "created",
      title: text.created,
      from: "md",
      cell: ({ createTime }) => <Time isRelative time={createTime} />,
    },
    {
      id: "expires",
      title: text.expireTime,
      from: "lg",
      cell: ({ expireTime }) => <Time isRelative time={expireTime} none={text.expiresNever} />,
    },
    {
      id: "account",
      title: text.account,
      from: "sm",
      cell: ({ accountId }) =>
        accountId === "" ? (
          <span className="text-muted">—</span>
        ) : (
          <Link
            to="/accounts/$accountId"
            params={{ accountId }}
            className="block max-w-40 truncate underline-offset-4 hover:underline"
          >
            {accountNames.get(accountId) ?? accountId.slice(-12)}
          </Link>
        ),
    },
    {
      id: "revoke",
      title: <span className="sr-only">{text.revoke}</span>,
      isTight: true,
      cell: (code) =>
        code.state === RedeemCodeState.OPEN && (
          <Button aria-label={`${text.revoke}: …${code.hint}`} onClick={() => onRevoke(code)}>
            {text.revoke}
          </Button>
        ),
    },
  ];
}
