/** The tools of messages requests: the client's own, and the dated ones of the vendor. */
import { isObject } from "./exchange.ts";
import {
  anything,
  flag,
  integer,
  invalid,
  list,
  map,
  nullable,
  record,
  type Shape,
  text,
  words,
} from "./shape.ts";

const custom = record({
  type: nullable(words("custom")),
  "name!": text({ min: 1, max: 128, pattern: /^[a-zA-Z0-9_-]+$/ }),
  description: text(),
  "input_schema!": (value, path) => {
    map(anything)(value, path);
    if (isObject(value) && value["type"] !== "object") {
      invalid([...path, "type"], "Input should be 'object'");
    }
  },
  strict: nullable(flag),
  cache_control: nullable(anything),
  defer_loading: flag,
  eager_input_streaming: nullable(flag),
  input_examples: list(anything),
  allowed_callers: anything,
});

const dated = record({
  "type!": text({
    pattern:
      /^(bash|text_editor|web_search|web_fetch|code_execution|memory|tool_search_tool_\w+|browser_toolset|computer_toolset|computer)_\d{8}$/,
  }),
  "name!": text(),
  cache_control: nullable(anything),
  max_uses: nullable(integer(1)),
  allowed_domains: nullable(list(text())),
  blocked_domains: nullable(list(text())),
  user_location: anything,
  max_characters: anything,
  defer_loading: flag,
  allowed_callers: anything,
});

/** Any tool. */
export const messagesTool: Shape = (value, path) => {
  const isDated = isObject(value) && value["type"] != null && value["type"] !== "custom";
  (isDated ? dated : custom)(value, path);
};
