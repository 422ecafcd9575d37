/**
 * The commands of `uas`, in the order of the help. Each is loaded when a line names it: the whole
 * program takes a second to load, and `--help` needs none of it.
 */
import type { Command } from "commander";
import type { CliTools } from "./context.ts";

/** A command, or a group of commands. */
export interface CommandEntry {
  readonly name: string;
  readonly description: string;
  /** Loads the function that adds options, actions and the commands of the group. */
  readonly load: () => Promise<(command: Command, tools: CliTools) => void>;
}

/** All commands. */
export const commands: readonly CommandEntry[] = [
  {
    name: "serve",
    description: "run the gateway until SIGTERM or SIGINT, then let running calls finish",
    load: async () => (await import("./serve.ts")).addServe,
  },
  {
    name: "init",
    description: "write a first uas.yaml: vendors, their models, and prices with a margin",
    load: async () => (await import("./init.ts")).addInit,
  },
  {
    name: "check",
    description: "check a configuration file and report all problems",
    load: async () => (await import("./check.ts")).addCheckCommand,
  },
  {
    name: "doctor",
    description: "check configuration, database, vendors and network, and say what to do",
    load: async () => (await import("./doctor.ts")).addDoctor,
  },
  {
    name: "schema",
    description: "print the JSON Schema of uas.yaml, with which editors complete and check keys",
    load: async () => (await import("./schema.ts")).addSchemaCommand,
  },
  {
    name: "import",
    description: "write uas.yaml from the configuration of LiteLLM or new-api",
    load: async () => (await import("./import.ts")).addImportCommands,
  },
  {
    name: "config",
    description: "show the configuration in force, its revisions and its secrets",
    load: async () => (await import("./config.ts")).addConfigCommands,
  },
  {
    name: "plan",
    description: "price the calls of the last 30 days again under another configuration",
    load: async () => (await import("./plan.ts")).addPlan,
  },
  {
    name: "apply",
    description: "put a configuration into force in all processes, as a new revision",
    load: async () => (await import("./config.ts")).addApply,
  },
  {
    name: "rollback",
    description: "put an earlier configuration into force again",
    load: async () => (await import("./config.ts")).addRollback,
  },
  {
    name: "reload",
    description: "load the configuration of the running gateway again",
    load: async () => (await import("./config.ts")).addReload,
  },
  {
    name: "account",
    description: "manage accounts",
    load: async () => (await import("./account.ts")).addAccountCommands,
  },
  {
    name: "topup",
    description: "add money to an account; repeating a reference changes nothing",
    load: async () => (await import("./account.ts")).addTopUp,
  },
  {
    name: "refund",
    description: "refund a charge, fully or in part; repeating a reference changes nothing",
    load: async () => (await import("./account.ts")).addRefund,
  },
  {
    name: "key",
    description: "manage API keys",
    load: async () => (await import("./key.ts")).addKeyCommands,
  },
  {
    name: "console",
    description: "sign in to the web console",
    load: async () => (await import("./console.ts")).addConsoleCommands,
  },
  {
    name: "models",
    description: "show the configured models",
    load: async () => (await import("./models.ts")).addModelsCommands,
  },
  {
    name: "vendor",
    description: "show vendors, their health and known presets",
    load: async () => (await import("./vendor.ts")).addVendorCommands,
  },
  {
    name: "alerts",
    description: "show what needs the operator, and test where alerts go",
    load: async () => (await import("./alerts.ts")).addAlertsCommands,
  },
  {
    name: "price",
    description: "show and import prices",
    load: async () => (await import("./price.ts")).addPriceCommands,
  },
  {
    name: "service",
    description: "manage the credentials of your own services",
    load: async () => (await import("./service.ts")).addServiceCommands,
  },
  {
    name: "redeem",
    description: "create and revoke redeem codes",
    load: async () => (await import("./redeem.ts")).addRedeemCommands,
  },
  {
    name: "calls",
    description: "search the call log",
    load: async () => (await import("./calls.ts")).addCallsCommands,
  },
  {
    name: "usage",
    description: "show usage and charges of an account, or of all accounts, over time",
    load: async () => (await import("./usage.ts")).addUsageCommand,
  },
  {
    name: "export",
    description: "write calls or ledger entries as a file, for accounting and reports",
    load: async () => (await import("./export.ts")).addExportCommands,
  },
  {
    name: "ledger",
    description: "read and check the ledger",
    load: async () => (await import("./ledger.ts")).addLedgerCommands,
  },
  {
    name: "task",
    description: "show asynchronous tasks",
    load: async () => (await import("./task.ts")).addTaskCommands,
  },
  {
    name: "webhook",
    description: "manage webhooks and their deliveries",
    load: async () => (await import("./webhook.ts")).addWebhookCommands,
  },
  {
    name: "master-key",
    description: "change the key that stored secrets are encrypted with",
    load: async () => (await import("./master-key.ts")).addMasterKeyCommands,
  },
  {
    name: "contract",
    description: "compare versions of the contract",
    load: async () => (await import("./contract.ts")).addContractCommands,
  },
  {
    name: "completion",
    description: "print a script with which bash, zsh or fish complete commands and options",
    load: async () => (await import("./completion.ts")).addCompletion,
  },
];
