/** What follows a change of settings. */
import { useQueryClient } from "@tanstack/react-query";
import { useToast } from "../ui/toast.tsx";

/** Says that it is done, and asks anew for what may have changed. */
export function useDone(): (title: string) => Promise<void> {
  const queries = useQueryClient();
  const toast = useToast();
  return async (title) => {
    toast({ title });
    await queries.invalidateQueries();
  };
}
