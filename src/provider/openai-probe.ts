/** The list of models of vendors of OpenAI's API. */
import { bearerHeader } from "./http-vendor.ts";
import { listedNames } from "./probe.ts";
import type { VendorProbe } from "./vendor.ts";

/** Lists the models. Azure lists those that it has, but calls name deployments of the customer. */
export const openaiProbe: VendorProbe = {
  request: ({ baseUrl, apiKey }) => ({
    url: `${baseUrl}/models`,
    headers: bearerHeader(apiKey),
  }),
  readModels: (reply, { baseUrl }) =>
    new URL(baseUrl).hostname.endsWith(".azure.com") ? undefined : listedNames(reply, "data", "id"),
};
