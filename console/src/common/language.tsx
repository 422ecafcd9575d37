/**
 * The languages of the console. Texts are plain typed objects, with functions for texts with
 * values: a missing text does not compile, each language handles its plurals, and no library of 20
 * KB is loaded.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { en, type Texts } from "../text/en.ts";
import { stored } from "./preferences.ts";

export type { Texts } from "../text/en.ts";

/** The languages by their BCP 47 tag, each with its native name. */
export const languages = { en: "English", zh: "简体中文" } as const;

export type Language = keyof typeof languages;

interface LanguageState {
  readonly language: Language;
  readonly texts: Texts;
  readonly choose: (language: Language) => void;
}

const LanguageContext = createContext<LanguageState | undefined>(undefined);

const chosen = stored("language", ["en", "zh"]);

/** The language chosen earlier, else the browser's, else English. */
export function firstLanguage(): Language {
  const found = chosen.read() ?? navigator.languages.find((each) => /^(?:zh|en)\b/.test(each));
  return found?.startsWith("zh") === true ? "zh" : "en";
}

/** Loads the texts of a language. */
export async function textsOf(language: Language): Promise<Texts> {
  return language === "en" ? en : (await import("../text/zh.ts")).zh;
}

/** Provides the language and its texts to everything below it. */
export function LanguageProvider({
  first,
  children,
}: {
  first: { language: Language; texts: Texts };
  children: ReactNode;
}) {
  const [state, setState] = useState(first);
  useEffect(() => {
    document.documentElement.lang = state.language === "zh" ? "zh-CN" : "en";
  }, [state.language]);
  const value = useMemo(
    () => ({
      ...state,
      choose: (language: Language) => {
        chosen.write(language);
        void textsOf(language).then((texts) => setState({ language, texts }));
      },
    }),
    [state],
  );
  return <LanguageContext.Provider value={value}>{children}</LanguageContext.Provider>;
}

/** The current language, its texts, and a function that changes it. */
export function useLanguage(): LanguageState {
  const state = useContext(LanguageContext);
  if (state === undefined) throw new Error("no language is given above");
  return state;
}

/** The texts of the current language. */
export function useText(): Texts {
  return useLanguage().texts;
}
