import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { LoopFold, loopState, type LoopState, type Run, type StreamEvent } from "../src/index.js";

interface Row {
  name: string;
  events: StreamEvent[];
  state: LoopState;
  runId?: string;
  run?: Run;
}

const file = new URL("../../../../tests/vectors/loop_state.jsonl", import.meta.url);
const rows = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => JSON.parse(line) as Row);

for (const row of rows) {
  test(`vector: ${row.name}`, () => {
    const fold = row.run ? LoopFold.ofRun(row.run) : new LoopFold(row.runId);
    for (const event of row.events) fold.add(event);
    assert.deepEqual(fold.state, row.state);
    if (!row.run) assert.deepEqual(loopState(row.events, row.runId), row.state);
  });
}

test("looking at the state changes nothing", () => {
  for (const row of rows.filter((one) => !one.run)) {
    const fold = new LoopFold(row.runId);
    for (const event of row.events) {
      fold.add(event);
      assert.deepEqual(fold.state, fold.state);
    }
    assert.deepEqual(fold.state, row.state);
  }
});

test("all rows are there", () => assert.ok(rows.length >= 200));
