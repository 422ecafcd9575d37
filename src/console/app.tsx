/** The root of the console: the cache of queries and the router. */
import { TransportProvider } from "@connectrpc/connect-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useState } from "react";
import { createQueries, transport } from "./common/rpc.ts";
import { createConsoleRouter } from "./routes.tsx";

/** The console, with a cache and a router of its own. */
export function App() {
  const [{ queries, router }] = useState(create);
  return (
    <TransportProvider transport={transport}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </TransportProvider>
  );
}

function create() {
  const router = createConsoleRouter();
  const queries = createQueries(() => {
    // The next user must not see what this one fetched. Queries of the current page would be fetched and refused again:
    // signing in clears them.
    queries.removeQueries({ type: "inactive" });
    const { href, pathname } = router.state.location;
    if (pathname === "/sign-in") return;
    const search = pathname === "/" ? {} : { next: href };
    void router.navigate({ to: "/sign-in", search, replace: true });
  });
  return { queries, router };
}
