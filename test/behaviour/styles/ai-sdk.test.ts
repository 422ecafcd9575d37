/** The clients of this library reach every model, whatever style its vendor speaks (R-TXT-1). */
import { aiRows } from "./clients/rows.ts";
import { checkThroughGateway } from "./matrix.ts";

checkThroughGateway(aiRows);
