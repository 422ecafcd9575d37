#!/usr/bin/env node
import "./node-version.js";
import "./compile-cache.js";
import { load } from "./program.js";

const { main } = await load("main");
await main(process.argv);
