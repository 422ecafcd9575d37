/** The entry of the console. */
import { CSPProvider } from "@base-ui/react/csp-provider";
import { TransportProvider } from "@connectrpc/connect-query";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { firstLanguage, LanguageProvider, textsOf } from "./common/language.tsx";
import { applyTheme } from "./common/preferences.ts";
import { createQueries, transport } from "./common/rpc.ts";
import { createConsoleRouter } from "./routes.tsx";
import "./style.css";
import { ToastProvider } from "./ui/toast.tsx";

applyTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);

/** Maximum wait of the first rendering for the fonts, which come from the same server. */
const fontsMs = 400;

/** Loads the fonts, so that text is not rendered in another font first and then moves. */
async function loadFonts(): Promise<void> {
  const fonts = ["1em 'Geist Variable'", "1em 'Geist Mono Variable'"];
  const late = new Promise<void>((resolve) => setTimeout(resolve, fontsMs));
  const loaded = Promise.all(fonts.map((font) => document.fonts.load(font)));
  await Promise.race([loaded.catch(() => undefined), late]);
}

/**
 * Draws the first page. No module waits for it: the texts of a language import modules that are
 * loaded with this one.
 */
async function start(): Promise<void> {
  const language = firstLanguage();
  const [texts] = await Promise.all([textsOf(language), loadFonts()]);
  const root = document.querySelector("#root");
  if (root === null) throw new Error("the page has no root");
  createRoot(root).render(
    <StrictMode>
      {/* The pages' security policy forbids style elements. */}
      <CSPProvider disableStyleElements>
        <LanguageProvider first={{ language, texts }}>
          <ToastProvider>
            <App />
          </ToastProvider>
        </LanguageProvider>
      </CSPProvider>
    </StrictMode>,
  );
}

void start();

/** The root of the console: the cache of queries and the router. */
function App() {
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
    // The next user must not see data of this one. Queries of the current page would be fetched and
    // refused again: signing in clears them.
    queries.removeQueries({ type: "inactive" });
    const { href, pathname } = router.state.location;
    if (pathname === "/sign-in") return;
    const search = pathname === "/" ? {} : { next: href };
    void router.navigate({ to: "/sign-in", search, replace: true });
  });
  return { queries, router };
}
