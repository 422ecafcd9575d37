/** What every page stands in: the queries' memory and the router. */
import { TransportProvider } from "@connectrpc/connect-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { useState } from "react";
import { createQueries, transport } from "./common/rpc.ts";
import { createConsoleRouter } from "./routes.tsx";

/** The console. */
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
    // What one user asked is not for the next one. What is on the page would be asked for again, and refused again:
    // signing in clears it.
    queries.removeQueries({ type: "inactive" });
    const { href, pathname } = router.state.location;
    if (pathname === "/sign-in") return;
    const search = pathname === "/" ? {} : { next: href };
    void router.navigate({ to: "/sign-in", search, replace: true });
  });
  return { queries, router };
}
