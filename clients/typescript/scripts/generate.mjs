// Writes src/wire.ts from the JSON Schemas of the project; with --check it only says whether they are in step.
import { readFileSync, writeFileSync } from "node:fs";

const schema = (name) => JSON.parse(readFileSync(new URL(`../../../schemas/${name}.json`, import.meta.url), "utf8"));
const target = new URL("../src/wire.ts", import.meta.url);

const PLAIN = { string: "string", integer: "number", number: "number", boolean: "boolean", null: "null" };

function typeOf(node) {
  if (node.$ref) return node.$ref.split("/").at(-1);
  if ("const" in node) return JSON.stringify(node.const);
  if (node.enum) return node.enum.map((one) => JSON.stringify(one)).join(" | ");
  if (node.anyOf) return [...new Set(node.anyOf.map(typeOf))].join(" | ");
  if (Array.isArray(node.type)) return node.type.map((type) => typeOf({ ...node, type })).join(" | ");
  if (node.type === "array") return `Array<${typeOf(node.items ?? {})}>`;
  if (node.type === "object" && node.properties) return `{\n${fields(node)}\n}`;
  if (node.type === "object") {
    const values = node.additionalProperties;
    return `Record<string, ${values && values !== true ? typeOf(values) : "Json"}>`;
  }
  return PLAIN[node.type] ?? "Json";
}

function fields(node) {
  const required = new Set(node.required ?? []);
  return Object.entries(node.properties ?? {})
    .map(([name, one]) => `${said(one, "  ")}  ${name}${required.has(name) ? "" : "?"}: ${typeOf(one)};`)
    .join("\n");
}

function said(node, indent = "") {
  return node.description ? `${indent}/** ${node.description.replaceAll("*/", "* /").replaceAll("\n", " ")} */\n` : "";
}

function declaration([name, node]) {
  if (node.type !== "object" || !node.properties) return `${said(node)}export type ${name} = ${typeOf(node)};\n`;
  const body = fields(node);
  return `${said(node)}export interface ${name} {\n${body}${body ? "\n" : ""}}\n`;
}

const event = schema("event");
const state = schema("loop_state");
const { $defs: parts, ...whole } = state;
const types = event.oneOf.map((one) => [one.properties.type.const, typeOf(one.properties.data), one.required.includes("seq")]);

const text = `// Written by scripts/generate.mjs from schemas/event.json and schemas/loop_state.json.

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

${Object.entries(parts).map(declaration).join("\n")}
${declaration(["LoopState", whole])}
${Object.entries(event.$defs).map(declaration).join("\n")}
/** The \`data\` of each type of event. */
export interface EventData {
${types.map(([name, data]) => `  ${JSON.stringify(name)}: ${data};`).join("\n")}
}

/** Types of events that are sent and not stored: they have no \`seq\`. */
export type EphemeralType =
${types.filter(([, , stored]) => !stored).map(([name]) => `  | ${JSON.stringify(name)}`).join("\n")};

/** What every event has. */
export interface Envelope {
${fields({ ...event, properties: Object.fromEntries(Object.entries(event.properties).filter(([name]) => !["type", "data", "seq", "id", "ts"].includes(name))) })}
}
`;

if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== text) {
    console.error("src/wire.ts is not in step with the schemas: npm run generate");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
