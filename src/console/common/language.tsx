/**
 * The languages of the console. Texts are plain typed objects, with functions where a value stands in them: a text
 * that is missing in a language does not compile, plurals are each language's own business, and the 20 KB of a
 * library for it are not loaded.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import { en, type Texts } from "../text/en.ts";
import { stored } from "./preferences.ts";

export type { Texts } from "../text/en.ts";

/** The languages, by their BCP 47 tag, each by its own name. */
export const languages = { en: "English", zh: "简体中文" } as const;

export type Language = keyof typeof languages;

interface Spoken {
  readonly language: Language;
  readonly texts: Texts;
  readonly choose: (language: Language) => void;
}

const SpokenContext = createContext<Spoken | undefined>(undefined);

const chosen = stored("language", ["en", "zh"]);

/** The language that was chosen before, else the browser's, else English. */
export function firstLanguage(): Language {
  const found = chosen.read() ?? navigator.languages.find((each) => /^(?:zh|en)\b/.test(each));
  return found?.startsWith("zh") === true ? "zh" : "en";
}

/** Loads the texts of a language. */
export async function textsOf(language: Language): Promise<Texts> {
  return language === "en" ? en : (await import("../text/zh.ts")).zh;
}

/** Gives everything below it its texts. */
export function LanguageProvider({
  first,
  children,
}: {
  first: { language: Language; texts: Texts };
  children: ReactNode;
}) {
  const [spoken, setSpoken] = useState(first);
  useEffect(() => {
    document.documentElement.lang = spoken.language === "zh" ? "zh-CN" : "en";
  }, [spoken.language]);
  const value = useMemo(
    () => ({
      ...spoken,
      choose: (language: Language) => {
        chosen.write(language);
        void textsOf(language).then((texts) => setSpoken({ language, texts }));
      },
    }),
    [spoken],
  );
  return <SpokenContext.Provider value={value}>{children}</SpokenContext.Provider>;
}

/** The language, and how to choose another one. */
export function useLanguage(): Spoken {
  const spoken = useContext(SpokenContext);
  if (spoken === undefined) throw new Error("no language is given above");
  return spoken;
}

/** The texts of the language. */
export function useText(): Texts {
  return useLanguage().texts;
}
