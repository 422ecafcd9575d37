/** The pages and their addresses. A new page is a file in `page/`, a line here, and one in `navigation.ts`. */
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import { Frame } from "./frame.tsx";
import { ForOperators } from "./operator/for-operators.tsx";
import {
  readAccountSearch,
  readAllCallSearch,
  readAllDeliverySearch,
  readAuditSearch,
  readCodeSearch,
} from "./operator/search.ts";
import { BrokenPage, MissingPage } from "./missing.tsx";
import {
  readCallSearch,
  readDeliverySearch,
  readKeySearch,
  readLedgerSearch,
  readModelSearch,
  readNext,
  readTaskSearch,
  readUsageSearch,
} from "./search.ts";

const root = createRootRoute({ notFoundComponent: MissingPage, errorComponent: BrokenPage });

/** Pages for who is signed in: in the frame with the navigation. */
const inside = createRoute({ getParentRoute: () => root, id: "inside", component: Frame });

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: readNext,
  component: lazyRouteComponent(() => import("./page/sign-in.tsx"), "SignInPage"),
});

const welcome = createRoute({
  getParentRoute: () => root,
  path: "/welcome",
  component: lazyRouteComponent(() => import("./page/welcome.tsx"), "WelcomePage"),
});

const overview = createRoute({
  getParentRoute: () => inside,
  path: "/",
  component: lazyRouteComponent(() => import("./page/overview.tsx"), "OverviewPage"),
});

const keys = createRoute({
  getParentRoute: () => inside,
  path: "/keys",
  validateSearch: readKeySearch,
  component: lazyRouteComponent(() => import("./page/keys.tsx"), "KeysPage"),
});

const calls = createRoute({
  getParentRoute: () => inside,
  path: "/calls",
  validateSearch: readCallSearch,
  component: lazyRouteComponent(() => import("./page/calls.tsx"), "CallsPage"),
});

const usage = createRoute({
  getParentRoute: () => inside,
  path: "/usage",
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(() => import("./page/usage.tsx"), "UsagePage"),
});

const settings = createRoute({
  getParentRoute: () => inside,
  path: "/settings",
  component: lazyRouteComponent(() => import("./page/settings.tsx"), "SettingsPage"),
});

const billing = createRoute({
  getParentRoute: () => inside,
  path: "/billing",
  validateSearch: readLedgerSearch,
  component: lazyRouteComponent(() => import("./page/billing.tsx"), "BillingPage"),
});

const tasks = createRoute({
  getParentRoute: () => inside,
  path: "/tasks",
  validateSearch: readTaskSearch,
  component: lazyRouteComponent(() => import("./page/tasks.tsx"), "TasksPage"),
});

const webhooks = createRoute({
  getParentRoute: () => inside,
  path: "/webhooks",
  validateSearch: readDeliverySearch,
  component: lazyRouteComponent(() => import("./page/webhooks.tsx"), "WebhooksPage"),
});

const models = createRoute({
  getParentRoute: () => inside,
  path: "/models",
  validateSearch: readModelSearch,
  component: lazyRouteComponent(() => import("./page/models.tsx"), "ModelsPage"),
});

const playground = createRoute({
  getParentRoute: () => inside,
  path: "/playground",
  validateSearch: readModelSearch,
  component: lazyRouteComponent(() => import("./page/playground.tsx"), "PlaygroundPage"),
});

/** Pages for operators. */
const operator = createRoute({
  getParentRoute: () => inside,
  id: "operator",
  component: ForOperators,
});

const accounts = createRoute({
  getParentRoute: () => operator,
  path: "/accounts",
  validateSearch: readAccountSearch,
  component: lazyRouteComponent(() => import("./page/accounts.tsx"), "AccountsPage"),
});

const account = createRoute({
  getParentRoute: () => operator,
  path: "/accounts/$accountId",
  validateSearch: readLedgerSearch,
  component: lazyRouteComponent(() => import("./page/account.tsx"), "AccountPage"),
});

const allCalls = createRoute({
  getParentRoute: () => operator,
  path: "/all-calls",
  validateSearch: readAllCallSearch,
  component: lazyRouteComponent(() => import("./page/all-calls.tsx"), "AllCallsPage"),
});

const allDeliveries = createRoute({
  getParentRoute: () => operator,
  path: "/all-deliveries",
  validateSearch: readAllDeliverySearch,
  component: lazyRouteComponent(() => import("./page/all-deliveries.tsx"), "AllDeliveriesPage"),
});

const codes = createRoute({
  getParentRoute: () => operator,
  path: "/codes",
  validateSearch: readCodeSearch,
  component: lazyRouteComponent(() => import("./page/codes.tsx"), "CodesPage"),
});

const audit = createRoute({
  getParentRoute: () => operator,
  path: "/audit",
  validateSearch: readAuditSearch,
  component: lazyRouteComponent(() => import("./page/audit.tsx"), "AuditPage"),
});

const vendors = createRoute({
  getParentRoute: () => operator,
  path: "/vendors",
  component: lazyRouteComponent(() => import("./page/vendors.tsx"), "VendorsPage"),
});

const prices = createRoute({
  getParentRoute: () => operator,
  path: "/prices",
  validateSearch: readModelSearch,
  component: lazyRouteComponent(() => import("./page/prices.tsx"), "PricesPage"),
});

const system = createRoute({
  getParentRoute: () => operator,
  path: "/system",
  component: lazyRouteComponent(() => import("./page/system.tsx"), "SystemPage"),
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
    playground,
    settings,
    operator.addChildren([
      accounts,
      account,
      allCalls,
      allDeliveries,
      vendors,
      prices,
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
