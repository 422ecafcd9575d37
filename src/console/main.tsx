/** The entry of the console. */
import { CSPProvider } from "@base-ui/react/csp-provider";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { firstLanguage, LanguageProvider, textsOf } from "./common/language.tsx";
import "./style.css";
import { applyTheme } from "./common/preferences.ts";
import { ToastProvider } from "./ui/toast.tsx";

applyTheme();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);

/** How long the first rendering waits for the fonts, in milliseconds: they come from the same server. */
const fontsMs = 400;

/** Loads the fonts, so that text is not rendered in another font first and then moves. */
async function loadFonts(): Promise<void> {
  const fonts = ["1em 'Geist Variable'", "1em 'Geist Mono Variable'"];
  const late = new Promise<void>((resolve) => setTimeout(resolve, fontsMs));
  const loaded = Promise.all(fonts.map((font) => document.fonts.load(font)));
  await Promise.race([loaded.catch(() => undefined), late]);
}

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
