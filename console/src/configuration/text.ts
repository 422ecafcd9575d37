/** The texts of this page. They are no part of the first page, unlike those of smaller pages. */
import { useLanguage } from "../common/language.tsx";
import { configuration as en, type ConfigurationTexts } from "../text/en/configuration.ts";
import { configuration as zh } from "../text/zh/configuration.ts";

/** The texts in the current language. */
export function useConfigurationText(): ConfigurationTexts {
  return useLanguage().language === "zh" ? zh : en;
}
