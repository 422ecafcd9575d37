/** `uas redeem …`: codes that customers exchange for balance. */
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import type { Command } from "commander";
import { TopUpSource } from "../../gen/uas/billing/v1/billing_pb.ts";
import { type RedeemCode, RedeemCodeStateSchema } from "../../gen/uas/billing/v1/redeem_pb.ts";
import { RedeemService } from "../../gen/uas/billing/v1/redeem_service_pb.ts";
import type { Money } from "../../gen/uas/type/v1/money_pb.ts";
import { withBackend } from "./backend.ts";
import type { CliTools, Output } from "./context.ts";
import { cell, table, everyPage } from "./output.ts";
import {
  countArgument,
  enumWord,
  orNull,
  timeText,
  usdArgument,
  usdText,
  whenArgument,
} from "./values.ts";

/** Default number of listed codes. */
const limitDefault = 100;

interface Wanted {
  readonly count: number;
  readonly sold?: boolean;
  readonly note: string;
  readonly expires?: Timestamp;
}

/** Adds the commands. */
export function addRedeemCommands(redeem: Command, { context, print }: CliTools): void {
  const run = async (work: (transport: Transport) => Promise<Output>): Promise<void> =>
    print(await withBackend(context, ({ transport }) => work(transport)));
  redeem
    .command("create")
    .description("create codes that customers redeem once; they cannot be shown again")
    .argument("<amount>", "value of each code in US dollars, such as 10.00", usdArgument)
    .option("--count <count>", "number of codes, at most 1000", countArgument, 1)
    .option("--sold", "customers paid for the codes: book payments, not grants")
    .option("--note <text>", "note about the purpose, for operators", "")
    .option("--expires <when>", "when the codes expire, such as 30d or 2027-01-31", (text) =>
      whenArgument(text),
    )
    .action((amount: Money, wanted: Wanted) => run((to) => createCodes(to, amount, wanted)));
  redeem
    .command("list")
    .description("list codes, newest first, with their last four characters only")
    .option("--limit <count>", "maximum number", countArgument, limitDefault)
    .action(({ limit }: { limit: number }) => run((to) => listCodes(to, limit)));
  redeem
    .command("revoke")
    .description("revoke an unredeemed code")
    .argument("<id>", "id of the code, as redeem list prints it")
    .action((redeemCodeId: string) => run((to) => revokeCode(to, redeemCodeId)));
}

async function createCodes(transport: Transport, amount: Money, wanted: Wanted): Promise<Output> {
  const { count, sold = false, note, expires } = wanted;
  const { codes, redeemCodes } = await createClient(RedeemService, transport).createRedeemCodes({
    amount,
    count,
    source: sold ? TopUpSource.PAYMENT : TopUpSource.PROMO,
    note,
    ...(expires && { expireTime: expires }),
  });
  const json = redeemCodes.map((each, index) => ({ code: codes[index], ...codeJson(each) }));
  return { json, text: codes.join("\n") };
}

async function listCodes(transport: Transport, limit: number): Promise<Output> {
  const client = createClient(RedeemService, transport);
  const codes = await everyPage(limit, async (page) => {
    const { redeemCodes, nextPageToken } = await client.listRedeemCodes(page);
    return { items: redeemCodes, nextPageToken };
  });
  return codeList(codes);
}

async function revokeCode(transport: Transport, redeemCodeId: string): Promise<Output> {
  const client = createClient(RedeemService, transport);
  const { redeemCode } = await client.revokeRedeemCode({ redeemCodeId });
  return codeList(redeemCode === undefined ? [] : [redeemCode]);
}

function codeList(codes: readonly RedeemCode[]): Output {
  const json = codes.map(codeJson);
  const head = ["ID", "ENDS IN", "USD", "STATE", "MADE", "EXPIRES", "ACCOUNT", "NOTE"];
  const rows = json.map((code) => [
    code.redeemCodeId,
    code.hint,
    code.amount,
    cell(code.state),
    cell(code.createdAt),
    cell(code.expiresAt),
    cell(code.accountId),
    cell(code.note),
  ]);
  return { json, text: table(head, rows) };
}

/** A code in the words of the command line. */
function codeJson(code: RedeemCode) {
  return {
    redeemCodeId: code.redeemCodeId,
    hint: code.hint,
    amount: usdText(code.amount),
    source: code.source === TopUpSource.PROMO ? "promo" : "payment",
    state: enumWord(RedeemCodeStateSchema, code.state),
    note: orNull(code.note),
    createdAt: timeText(code.createTime),
    expiresAt: timeText(code.expireTime),
    endedAt: timeText(code.endTime),
    accountId: orNull(code.accountId),
  };
}
