export { barX, barY, line, lineY, plot, pointerX, ruleX, ruleY, stackX, text, tip } from "@observablehq/plot";
