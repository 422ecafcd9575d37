/** Who did something, by name. */
import { useQuery } from "@connectrpc/connect-query";
import { UserService } from "../../../gen/uas/account/v1/user_service_pb.ts";
import { userName } from "../account/user-name.ts";
import { useText } from "../language.tsx";

/** The most people whose names are asked for; others are shown by their id. */
const usersMax = 1_000;

const userPrefix = "user ";

/** What to call the actor of an entry. */
export function useActorName(): (actor: string) => string {
  const {
    operator: { audit: text },
  } = useText();
  const { data } = useQuery(
    UserService.method.listUsers,
    { pageSize: usersMax },
    { staleTime: 60_000 },
  );
  const names = new Map((data?.users ?? []).map((user) => [user.userId, userName(user)]));
  return (actor) => {
    if (actor === "command line") return text.commandLine;
    if (actor === "operator token") return text.operatorToken;
    if (!actor.startsWith(userPrefix)) return actor;
    const id = actor.slice(userPrefix.length);
    return names.get(id) ?? text.someUser(id.slice(-4));
  };
}
