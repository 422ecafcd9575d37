#!/usr/bin/env node
import "./node-version.js";
import "./compile-cache.js";
const { main } = await import("../src/main.ts");
await main(process.argv);
