#!/usr/bin/env node
import "./node-version.js";
const { main } = await import("../src/main.ts");
await main(process.argv);
