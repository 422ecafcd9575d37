/** Places system text if a vendor accepts it. Pure. */
import { Role, type Turn } from "../../../gen/uas/inference/v1/conversation_pb.ts";
import type { VendorQuirks } from "../../core/vendor-quirks.ts";
import { newTurn } from "./parts.ts";

/**
 * The turns with their system text in one place: as the user's text behind the first turn of
 * another role, or all of it at the top. The same array if nothing changes.
 *
 * @param late see {@link VendorQuirks.lateSystem}
 */
export function placeSystem(
  turns: readonly Turn[],
  late: NonNullable<VendorQuirks["lateSystem"]>,
): readonly Turn[] {
  if (late === "in_place") return turns;
  const first = turns.findIndex((turn) => !isSystem(turn));
  const head = first < 0 ? turns : turns.slice(0, first);
  const rest = turns.slice(head.length);
  if (head.length <= 1 && !rest.some(isSystem)) return turns;
  if (late === "as_user") {
    return [...merged(head), ...rest.map((turn) => (isSystem(turn) ? asUser(turn) : turn))];
  }
  const all = [...head, ...rest.filter(isSystem)];
  return [...merged(all), ...rest.filter((turn) => !isSystem(turn))];
}

function isSystem({ role }: Turn): boolean {
  return role === Role.SYSTEM;
}

function asUser(turn: Turn): Turn {
  return { ...turn, role: Role.USER, roleWord: "" };
}

function merged(turns: readonly Turn[]): readonly Turn[] {
  const [first, ...more] = turns;
  if (first === undefined || more.length === 0) return turns;
  const parts = turns.flatMap((turn) => turn.parts);
  const extras = turns.flatMap((turn) => turn.extras);
  return [newTurn(Role.SYSTEM, parts, { roleWord: first.roleWord, extras })];
}
