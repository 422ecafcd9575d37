/**
 * The pages and their addresses. A new page is a `page.tsx` in the folder of its area, a route
 * here, and a line in `layout/navigation.tsx`.
 */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import {
  readAccountSearch,
  readAllCallSearch,
  readAllDeliverySearch,
  readAuditSearch,
  readCallSearch,
  readCodeSearch,
  readConfigurationSearch,
  readDeliverySearch,
  readFinanceSearch,
  readKeySearch,
  readLedgerSearch,
  readModelSearch,
  readNext,
  readTaskSearch,
  readUsageSearch,
} from "./common/search.ts";
import { Layout } from "./layout/layout.tsx";
import { ErrorPage, NotFoundPage, OperatorOnly } from "./layout/outside.tsx";

const root = createRootRoute({ notFoundComponent: NotFoundPage, errorComponent: ErrorPage });

/** Pages of signed-in users: in the layout with the navigation. */
const inside = createRoute({ getParentRoute: () => root, id: "inside", component: Layout });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: readNext,
  component: lazyRouteComponent(() => import("./sign-in/page.tsx"), "SignInPage"),
});

const welcome = createRoute({
  getParentRoute: () => root,
  path: "/welcome",
  component: lazyRouteComponent(() => import("./sign-in/page.tsx"), "WelcomePage"),
});

const overview = createRoute({
  getParentRoute: () => inside,
  path: "/",
  component: lazyRouteComponent(() => import("./overview/page.tsx"), "OverviewPage"),
});

const keys = createRoute({
  getParentRoute: () => inside,
  path: "/keys",
  validateSearch: readKeySearch,
  component: lazyRouteComponent(() => import("./keys/page.tsx"), "KeysPage"),
});

const calls = createRoute({
  getParentRoute: () => inside,
  path: "/calls",
  validateSearch: readCallSearch,
  component: lazyRouteComponent(() => import("./calls/page.tsx"), "CallsPage"),
});

const usage = createRoute({
  getParentRoute: () => inside,
  path: "/usage",
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(() => import("./usage/page.tsx"), "UsagePage"),
});

const settings = createRoute({
  getParentRoute: () => inside,
  path: "/settings",
  component: lazyRouteComponent(() => import("./settings/page.tsx"), "SettingsPage"),
});

const billing = createRoute({
  getParentRoute: () => inside,
  path: "/billing",
  validateSearch: readLedgerSearch,
  component: lazyRouteComponent(() => import("./billing/page.tsx"), "BillingPage"),
});

const tasks = createRoute({
  getParentRoute: () => inside,
  path: "/tasks",
  validateSearch: readTaskSearch,
  component: lazyRouteComponent(() => import("./tasks/page.tsx"), "TasksPage"),
});

const webhooks = createRoute({
  getParentRoute: () => inside,
  path: "/webhooks",
  validateSearch: readDeliverySearch,
  component: lazyRouteComponent(() => import("./webhooks/page.tsx"), "WebhooksPage"),
});

const models = createRoute({
  getParentRoute: () => inside,
  path: "/models",
  validateSearch: readModelSearch,
  component: lazyRouteComponent(() => import("./models/page.tsx"), "ModelsPage"),
});

const reference = createRoute({
  getParentRoute: () => inside,
  path: "/reference",
  component: lazyRouteComponent(() => import("./reference/page.tsx"), "ReferencePage"),
});

const playground = createRoute({
  getParentRoute: () => inside,
  path: "/playground",
  validateSearch: readModelSearch,
  component: lazyRouteComponent(() => import("./playground/page.tsx"), "PlaygroundPage"),
});

/** Pages for operators. */
const operator = createRoute({
  getParentRoute: () => inside,
  id: "operator",
  component: OperatorOnly,
});

const accounts = createRoute({
  getParentRoute: () => operator,
  path: "/accounts",
  validateSearch: readAccountSearch,
  component: lazyRouteComponent(() => import("./accounts/page.tsx"), "AccountsPage"),
});

const account = createRoute({
  getParentRoute: () => operator,
  path: "/accounts/$accountId",
  validateSearch: readLedgerSearch,
  component: lazyRouteComponent(() => import("./account/page.tsx"), "AccountPage"),
});

const allCalls = createRoute({
  getParentRoute: () => operator,
  path: "/all-calls",
  validateSearch: readAllCallSearch,
  component: lazyRouteComponent(() => import("./calls/page.tsx"), "AllCallsPage"),
});

const allDeliveries = createRoute({
  getParentRoute: () => operator,
  path: "/all-deliveries",
  validateSearch: readAllDeliverySearch,
  component: lazyRouteComponent(() => import("./webhooks/page.tsx"), "AllDeliveriesPage"),
});

const finance = createRoute({
  getParentRoute: () => operator,
  path: "/finance",
  validateSearch: readFinanceSearch,
  component: lazyRouteComponent(() => import("./finance/page.tsx"), "FinancePage"),
});

const codes = createRoute({
  getParentRoute: () => operator,
  path: "/codes",
  validateSearch: readCodeSearch,
  component: lazyRouteComponent(() => import("./codes/page.tsx"), "CodesPage"),
});

const audit = createRoute({
  getParentRoute: () => operator,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => import("./audit/page.tsx"), "AuditPage"),
});

const vendors = createRoute({
  getParentRoute: () => operator,
  path: "/vendors",
  component: lazyRouteComponent(() => import("./vendors/page.tsx"), "VendorsPage"),
});

const prices = createRoute({
  getParentRoute: () => operator,
  path: "/prices",
  validateSearch: readModelSearch,
  component: lazyRouteComponent(() => import("./prices/page.tsx"), "PricesPage"),
});

const configuration = createRoute({
  getParentRoute: () => operator,
  path: "/configuration",
  validateSearch: readConfigurationSearch,
  component: lazyRouteComponent(() => import("./configuration/page.tsx"), "ConfigurationPage"),
});

const system = createRoute({
  getParentRoute: () => operator,
  path: "/system",
  component: lazyRouteComponent(() => import("./system/page.tsx"), "SystemPage"),
});

const tree = root.addChildren([
  signIn,
  welcome,
  inside.addChildren([
    overview,
    keys,
    calls,
    usage,
    billing,
    tasks,
    webhooks,
    models,
    reference,
    playground,
    settings,
    operator.addChildren([
      accounts,
      account,
      allCalls,
      allDeliveries,
      vendors,
      prices,
      configuration,
      finance,
      codes,
      audit,
      system,
    ]),
  ]),
]);

/** Creates the router; one for each start of the console. */
export function createConsoleRouter() {
  return createRouter({
    routeTree: tree,
    basepath: "/console",
    defaultPreload: "intent",
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>;
  }
}
